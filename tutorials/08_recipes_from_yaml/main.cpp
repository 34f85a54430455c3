#include "common/lesson.h"

#include "kitchen/base/error.h"
#include "kitchen/config/layer_match.h"
#include "kitchen/config/yaml.h"
#include "kitchen/extension/kitchen_quantization_params.h"
#include "kitchen/extension/q_linear_params_config_schema.h"
#include "kitchen/extension/validate_recipe.h"
#include "kitchen/report/bar_chart.h"

#include <fmt/format.h>

#include <map>

namespace {

using namespace kitchen;
using tutorials::exact;
using tutorials::Lesson;

// ## 1. One configuration
//
// The smallest piece of a recipe file says what one layer gets: a type and a number. The schema of
// that type checks the keys and turns the number into parameters.
void parse_one_configuration(Lesson& lesson) {
  const ConfigDict dict = {{"kitchen_config_type", "QLinearParams"}, {"recipe_idx", 2}};
  const auto schema = QLinearParamsConfigSchema::parse_config_dict(dict);
  lesson.number("recipe_idx", "recipe_idx", static_cast<double>(schema.recipe_idx), exact());
  lesson.print(schema.to_kitchen_qlinear()->repr());
}

/// The recipe of this tutorial: first layer unquantized, everything else in FP8.
const char* const kRecipe = R"(
configs:
  high_precision: {kitchen_config_type: QLinearParams, recipe_idx: 1}
  fp8:            {kitchen_config_type: QLinearParams, recipe_idx: 2}
matchers:
  first:  {type: glob, pattern: "*layers.0.*", config: high_precision, enabled: true}
  output: {type: glob, pattern: "output_layer", config: high_precision, enabled: true}
  rest:   {type: glob, pattern: "*", config: fp8, enabled: true}
)";

RecipeConfig recipe_of(const std::string& yaml) {
  const ConfigValue document = parse_yaml(yaml, "recipe.yaml");
  return RecipeConfig::from_config_dict(*document.get_if<ConfigDict>());
}

std::vector<std::string> model_paths(int num_layers) {
  std::vector<std::string> paths;
  for (int i = 0; i < num_layers; ++i) {
    for (const char* name : {"self_attention.linear_qkv", "self_attention.linear_proj",
                             "mlp.linear_fc1", "mlp.linear_fc2"}) {
      paths.push_back(fmt::format("decoder.layers.{}.{}", i, name));
    }
  }
  paths.emplace_back("output_layer");
  return paths;
}

// ## 2. From layers to configurations
//
// A recipe file has two parts: named configurations, and matchers that give them to layers by the
// path of the layer in the model. The first matcher that fits wins, so the special ones come first
// and `*` comes last. Nobody hands a recipe to a layer; each layer asks with its own path.
void match_a_model(Lesson& lesson) {
  const RecipeConfig recipe = recipe_of(kRecipe);
  const std::vector<LayerMatch> matches = match_layers(recipe, model_paths(2));
  lesson.print(to_string(matches));
  std::map<std::string, double> layers;
  for (const LayerMatch& match : matches) ++layers[match.config_key];
  report::BarChart chart;
  chart.title = "How many of nine linear layers each configuration gets";
  chart.description = "Two bars: fp8 has four layers, high_precision five.";
  chart.id = "layers";
  chart.value_label = "layers";
  chart.series = {{"layers", {}, {}}};
  for (const auto& [key, count] : layers) {
    chart.categories.push_back(key);
    chart.series[0].values.push_back(count);
    lesson.number("layers_" + key, "layers with " + key, count, exact());
  }
  lesson.figure("layers.svg", report::bar_chart(chart));
}

/// The parameters that the layer at `path` gets from `recipe`.
KitchenQuantizationParams params_at(const RecipeConfig& recipe, const std::string& path) {
  return KitchenQuantizationParams::parse_from_config(
      recipe.match(MatchContext{path, layer_number_of(path)}));
}

// ## 3. What a layer receives
//
// The result remembers how it came about: which layer asked and which configuration answered. That
// is what you want to read when a layer does something unexpected. Layers with equal numbers share
// one object of parameters, so a thousand layers cost no more than one.
void ask_as_a_layer(Lesson& lesson) {
  const RecipeConfig recipe = recipe_of(kRecipe);
  const auto params = params_at(recipe, "decoder.layers.1.mlp.linear_fc1");
  lesson.print(fmt::format("  asked as  {}", to_string(params.match_input)));
  lesson.print(fmt::format("  answer    {}, recipe \"{}\"", params.params_config_key,
                           params.qlinear_params->name));
  const auto other = params_at(recipe, "decoder.layers.1.mlp.linear_fc2");
  lesson.number("shared", "two layers share one object (1: yes)",
                params.qlinear_params == other.qlinear_params ? 1 : 0, exact());
}

// ## 4. Mistakes
//
// A recipe that is not what you meant would train something else for hours. So a mistake is an
// error before the first step, and it says where it stands in the file.
void make_mistakes(Lesson& lesson) {
  int refused = 0;
  for (const char* yaml :
       {"configs: {a: {kitchen_config_type: QLinearParams, recipe_idx: \"2\"}}\n"
        "matchers: {m: {type: glob, pattern: \"*\", config: a, enabled: true}}",
        "configs: {a: {kitchen_config_type: QLinearParams, recipe_idx: 77}}\n"
        "matchers: {m: {type: glob, pattern: \"*\", config: a, enabled: true}}",
        "configs: {a: {kitchen_config_type: QLinearParams, recipe_idx: 2}}\n"
        "matchers: {m: {type: glob, pattern: \"*\", config: b, enabled: true}}"}) {
    try {
      validate_recipe(recipe_of(yaml));
    } catch (const Error& error) {
      ++refused;
      lesson.print(fmt::format("  {}", error.what()));
    }
  }
  lesson.number("refused", "recipes refused, of 3", refused, exact());
}

/// How many of twelve layers with one path each a matcher at `place` of `yaml` takes.
std::size_t layers_matched(const std::string& matchers, const std::string& label) {
  const RecipeConfig recipe = recipe_of(
      "configs: {a: {kitchen_config_type: QLinearParams, recipe_idx: 2}}\nmatchers: " + matchers);
  std::vector<std::string> paths;
  for (int i = 0; i < 12; ++i) paths.push_back(fmt::format("decoder.layers.{}", i));
  std::size_t count = 0;
  for (const LayerMatch& match : match_layers(recipe, paths))
    count += match.matcher == label ? 1 : 0;
  return count;
}

std::string layers_of_one(const ContextPtr&) {
  return fmt::format("{}", layers_matched("{one: {type: glob, pattern: \"*layers.1*\", config: a, "
                                          "enabled: true}}",
                                          "one"));
}

std::string layers_after_star(const ContextPtr&) {
  return fmt::format("{}",
                     layers_matched("{all: {type: glob, pattern: \"*\", config: a, enabled: true}, "
                                    "one: {type: glob, pattern: \"*layers.1*\", config: a, "
                                    "enabled: true}}",
                                    "one"));
}

std::string layers_without_enabled(const ContextPtr&) {
  return fmt::format(
      "{}", layers_matched("{one: {type: glob, pattern: \"*layers.1*\", config: a}}", "one"));
}

}  // namespace

int main(int argc, char** argv) {
  return tutorials::run_tutorial(
      "08_recipes_from_yaml",
      {{"One configuration", parse_one_configuration},
       {"From layers to configurations", match_a_model},
       {"What a layer receives", ask_as_a_layer},
       {"Mistakes", make_mistakes}},
      {{"A model has decoder.layers.0 to 11. How many does the pattern *layers.1* match?",
        "A star is any run of characters, digits too.", layers_of_one},
       {"Change the order: put a matcher with * before it. How many layers are left for it?",
        "The first matcher that fits wins.", layers_after_star},
       {"Leave out `enabled` in the only matcher. How many layers does it take?",
        "The documented reader treats a matcher without it as switched off.",
        layers_without_enabled}},
      argc, argv);
}
