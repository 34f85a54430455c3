#include "kitchen/modules/module.h"

#include "kitchen/base/error.h"
#include "kitchen/modules/init_methods.h"
#include "kitchen/modules/module_spec.h"
#include "kitchen/modules/required.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/layers.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

#include <sstream>

namespace kitchen {
namespace {

using testing::RankTest;
using testing::same_bits;
using testing::throws;
using testing::values_of;

/// A module with one parameter [size] and any children.
class Box : public Module {
 public:
  explicit Box(std::int64_t size) {
    register_parameter("weight", &weight);
    register_parameter("never_allocated", &never_allocated);
    if (size > 0) {
      weight = make_parameter(default_context(), {size}, DType::float32, {"box"}, nullptr);
    }
  }
  void add(const std::string& name, const std::shared_ptr<Module>& child) {
    register_child(name, child);
  }
  [[nodiscard]] std::string class_name() const override { return "Box"; }

  Parameter weight;
  Parameter never_allocated;
  int loads = 0;

 protected:
  [[nodiscard]] std::vector<StateDict::Item> extra_state() const override {
    if (!weight.defined()) return {};
    return {{"_extra_state", Tensor::empty(default_context(), {0}, DType::uint8)}};
  }
  void load_extra_state(const std::string& /*name*/, const Tensor& /*value*/) override { ++loads; }
};

class ModuleTree : public RankTest {
 protected:
  ModuleTree() {
    root->add("layers", list);
    list->add("0", first);
    list->add("1", second);
    first->add("mlp", inner);
  }
  std::shared_ptr<Box> root = std::make_shared<Box>(0);
  std::shared_ptr<Box> list = std::make_shared<Box>(0);
  std::shared_ptr<Box> first = std::make_shared<Box>(2);
  std::shared_ptr<Box> second = std::make_shared<Box>(3);
  std::shared_ptr<Box> inner = std::make_shared<Box>(4);
};

template <class Pairs>
std::vector<std::string> names_of(const Pairs& pairs) {
  std::vector<std::string> names;
  for (const auto& pair : pairs) names.push_back(pair.first);
  return names;
}

using Names = std::vector<std::string>;

// labels: Module.named_modules Module.named_parameters Module.named_children
TEST_F(ModuleTree, DottedNamesInPreOrder) {
  EXPECT_EQ(names_of(root->named_children()), (Names{"layers"}));
  EXPECT_EQ(names_of(root->named_modules()),
            (Names{"", "layers", "layers.0", "layers.0.mlp", "layers.1"}));
  EXPECT_EQ(names_of(root->named_parameters()),
            (Names{"layers.0.weight", "layers.0.mlp.weight", "layers.1.weight"}));
  EXPECT_EQ(root->named_modules()[2].second, first);
  second->weight = first->weight;  // a shared parameter appears once
  EXPECT_EQ(root->named_parameters().size(), 2u);
  root->add("layers", second);  // the same name replaces
  EXPECT_EQ(names_of(root->named_modules()), (Names{"", "layers"}));
  root->add("none", nullptr);
  EXPECT_EQ(root->named_children().size(), 1u);
}

// labels: Module.named_modules
TEST_F(ModuleTree, WorksForAModuleThatNoPointerOwns) {
  Box local(1);
  local.add("child", first);
  EXPECT_EQ(local.named_modules().size(), 3u);
  EXPECT_EQ(names_of(local.named_parameters())[0], "weight");
}

// labels: Module.train
TEST_F(ModuleTree, TrainAndEvalReachAllBelow) {
  root->eval();
  for (const auto& [name, module] : root->named_modules()) EXPECT_FALSE(module->training) << name;
  first->train();
  EXPECT_TRUE(inner->training);
  EXPECT_FALSE(second->training);
}

// labels: Module.repr
TEST_F(ModuleTree, ReprIsTheClassName) {
  std::ostringstream out;
  out << *root;
  EXPECT_EQ(out.str(), "Box()");
}

StateDict filled_state(const Module& module, float value) {
  StateDict state;
  const StateDict own = module.state_dict();
  for (const auto& [name, tensor] : own.items()) {
    if (tensor.dtype() == DType::uint8) continue;
    Tensor copy = Tensor::empty(tensor.context(), tensor.shape(), tensor.dtype());
    init_method_constant(value)(copy);
    state.set(name, copy);
  }
  return state;
}

// labels: Module.state_dict Module.load_state_dict
TEST_F(ModuleTree, StateRoundTrips) {
  EXPECT_EQ(names_of(root->state_dict("model.").items()),
            (Names{"model.layers.0.weight", "model.layers.0._extra_state",
                   "model.layers.0.mlp.weight", "model.layers.0.mlp._extra_state",
                   "model.layers.1.weight", "model.layers.1._extra_state"}));
  StateDict state = filled_state(*root, 2.5f);
  const std::int64_t version = first->weight.version();
  root->load_state_dict(state);  // without any _extra_state, strict
  EXPECT_EQ(values_of(inner->weight.detach()), (std::vector<double>(4, 2.5)));
  EXPECT_GT(first->weight.version(), version) << "caches must see the load";
  EXPECT_EQ(first->loads, 0);
  state.set("layers.0._extra_state", Tensor());
  state.set("layers.7._extra_state3", Tensor());
  state.set("layers.1.weight", tensor({3}, 1, DType::bfloat16));
  root->load_state_dict(state);
  EXPECT_EQ(first->loads, 1);
  EXPECT_TRUE(same_bits(tensor({3}, 1), second->weight.detach()));
}

// labels: Module.load_state_dict K17
TEST_F(ModuleTree, AllMismatchesComeInOneMessageAndNothingIsLoaded) {
  StateDict state = filled_state(*root, 2.5f);
  state.erase("layers.0.weight");
  state.set("layers.1.weight", tensor({5}, 1));
  state.set("layers.0.mlp.weight", Tensor::zeros(context, {4}, DType::int64));
  state.set("stranger", tensor({1}, 1));
  EXPECT_TRUE(throws<RuntimeError>(
      [&] { root->load_state_dict(state); },
      {"Box", "nothing was loaded", "missing: layers.0.weight", "layers.1.weight", "[5]", "[3]",
       "layers.0.mlp.weight", "int64", "unexpected: stranger"}));
  EXPECT_EQ(values_of(second->weight.detach()), (std::vector<double>(3, 0.0)));
  EXPECT_EQ(values_of(inner->weight.detach()), (std::vector<double>(4, 0.0)));
  state.set("layers.1.weight", Tensor());
  state.set("layers.0.mlp.weight",
            testing::tensor_of(testing::poisoned_context(), {4}, DType::float32,
                                              {1, 2, 3, 4}));
  EXPECT_TRUE(throws<RuntimeError>([&] { root->load_state_dict(state, false); },
                                   {"undefined", "another context"}));
  state.erase("layers.1.weight");
  state.erase("layers.0.mlp.weight");
  EXPECT_NO_THROW(root->load_state_dict(state, /*strict=*/false));
  EXPECT_TRUE(throws<KeyError>([&] { (void)state.at("layers.1.weight"); }, {"layers.1.weight"}));
}

/// What build_module is asked to make.
class Widget : public Module {
 public:
  std::int64_t size = 0;
  bool flag = false;
  std::string parts;
  [[nodiscard]] std::string class_name() const override { return "Widget"; }
  static ModuleInfo module_info() {
    return {"Widget",
            {"size", "flag", "submodules"},
            [](const BuildArgs& args) -> std::shared_ptr<Module> {
              auto widget = std::make_shared<Widget>();
              widget->size = args.get<std::int64_t>("size");
              widget->flag = args.get_or<bool>("flag", false);
              args.assign("submodules", widget->parts);
              if (widget->size < 0) throw NotImplementedError("negative size");
              return widget;
            }};
  }
};

using BuildModule = RankTest;

// labels: build_module ModuleSpec
TEST_F(BuildModule, MergesSpecAndCall) {
  const ModuleSpec spec(module_type<Widget>(), {{"flag", true}}, std::string("parts"));
  const auto widget = build_module_as<Widget>(spec, BuildArgs({std::int64_t{3}}, {}));
  EXPECT_EQ(widget->size, 3);
  EXPECT_TRUE(widget->flag);
  EXPECT_EQ(widget->parts, "parts");
  EXPECT_EQ(module_type<Widget>().name(), "Widget");
  EXPECT_EQ(module_type<Widget>(), module_type<Widget>());
  EXPECT_NE(module_type<Widget>().type(), std::type_index(typeid(Box)));
}

// labels: build_module
TEST_F(BuildModule, EveryErrorNamesTheClassAndKeepsItsType) {
  const ModuleSpec spec(module_type<Widget>(), {{"flag", true}}, std::string("parts"));
  const std::string suffix = " when instantiating Widget";
  const std::int64_t one = 1;
  const auto build = [&](BuildArgs args) { return [&spec, args] { (void)build_module(spec, args); }; };
  EXPECT_TRUE(throws<TypeError>(build(BuildArgs({one}, {{"colour", 1}})),
                                {"unexpected keyword argument 'colour'", suffix}));
  EXPECT_TRUE(throws<TypeError>(build(BuildArgs({one}, {{"flag", false}})), {"'flag'", suffix}));
  EXPECT_TRUE(throws<TypeError>(build(BuildArgs({one}, {{"submodules", std::string("x")}})),
                                {"'submodules'", suffix}));
  EXPECT_TRUE(throws<TypeError>(build(BuildArgs({one}, {{"size", one}})),
                                {"multiple values", "'size'", suffix}));
  EXPECT_TRUE(throws<TypeError>(build(BuildArgs({one, one, one, one}, {})),
                                {"takes 3", "4 were given", suffix}));
  EXPECT_TRUE(throws<TypeError>(build(BuildArgs({}, {})),
                                {"missing required keyword argument 'size'", suffix}));
  EXPECT_TRUE(throws<TypeError>(build(BuildArgs({1.5}, {})), {"'size'", "wrong type", suffix}));
  EXPECT_TRUE(throws<NotImplementedError>(build(BuildArgs({std::int64_t{-1}}, {})),
                                          {"negative size", suffix}));
  EXPECT_TRUE(throws<TypeError>(
      [] { (void)build_module_as<Box>(module_type<Widget>(), BuildArgs({std::int64_t{1}}, {})); },
      {"Widget"}));
}

// labels: Required
TEST_F(BuildModule, AnUnsetRequiredArgumentIsNamed) {
  const Required<bool> unset;
  EXPECT_FALSE(unset.is_set());
  EXPECT_TRUE(throws<TypeError>([&] { (void)unset.get("KitchenLinear", "bias"); },
                                {"KitchenLinear", "missing required keyword argument 'bias'"}));
  EXPECT_TRUE(Required<bool>(false).is_set());
}

}  // namespace
}  // namespace kitchen
