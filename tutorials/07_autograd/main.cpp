#include "common/data.h"
#include "common/layers.h"
#include "common/lesson.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/math_functions.h"
#include "kitchen/autograd/recompute.h"
#include "kitchen/base/error.h"
#include "kitchen/report/bar_chart.h"

#include <fmt/format.h>

namespace {

using namespace kitchen;
using tutorials::exact;
using tutorials::Lesson;
using tutorials::normal_tensor;
using tutorials::saved_bytes;

/// A leaf: a tensor that wants to know its gradient.
Tensor leaf(const ContextPtr& context, float value) {
  const Tensor x = Tensor::from_vector<float>(context, {1}, {value});
  autograd::set_requires_grad(x);
  return x;
}

double gradient(const Tensor& x) {
  return autograd::grad_of(x).to_vector<float>()[0];
}

// ## 1. Two gradients
//
// Each operation on a tensor that wants a gradient leaves an entry on the *tape*: what it was, and
// what its backward will need. `backward` walks the tape from the newest entry to the oldest and
// hands each one the gradient of its output. Here f = (a·b + b)·a, so df/da = 2ab + b and df/db =
// a·a + a.
void differentiate(Lesson& lesson) {
  const Tensor a = leaf(lesson.context(), 2.0f);
  const Tensor b = leaf(lesson.context(), 3.0f);
  const Tensor f = autograd::multiply(autograd::add(autograd::multiply(a, b), b), a);
  autograd::backward(f);
  lesson.number("df_da", "df/da at a = 2, b = 3", gradient(a), exact());
  lesson.number("df_db", "df/db at a = 2, b = 3", gradient(b), exact());
}

// ## 2. The tape
//
// The tape can be read. Each line names an operation, the entries that made its inputs, and the
// bytes that it keeps alive. An entry is always younger than those it reads from, so going through
// them from the newest to the oldest visits each one after all that used it: the order needs no
// search.
void read_the_tape(Lesson& lesson) {
  const Tensor a = leaf(lesson.context(), 2.0f);
  const Tensor b = leaf(lesson.context(), 3.0f);
  const Tensor f = autograd::multiply(autograd::add(autograd::multiply(a, b), b), a);
  const auto tape = autograd::describe_tape(f);
  for (std::size_t i = 0; i < tape.size(); ++i) {
    std::string inputs;
    for (const std::size_t input : tape[i].inputs) inputs += fmt::format(" {}", input);
    lesson.print(fmt::format("  {}: {}, saves {} bytes, reads from{}", i, tape[i].name,
                             tape[i].saved_bytes, inputs.empty() ? " leaves" : inputs));
  }
  lesson.number("entries", "entries", static_cast<double>(tape.size()), exact());
}

// ## 3. Gradients add up
//
// A leaf that is used twice gets both contributions, and a second backward adds to the first. That
// is what makes gradient accumulation over micro-batches work, and why somebody must set gradients
// to zero between steps. What was saved is freed on the way: one tape serves one backward.
void add_gradients(Lesson& lesson) {
  const Tensor a = leaf(lesson.context(), 2.0f);
  autograd::backward(autograd::multiply(a, a));
  lesson.number("once", "d(a·a)/da", gradient(a), exact());
  const Tensor square = autograd::multiply(a, a);
  autograd::backward(square);
  lesson.number("twice", "after a second tape", gradient(a), exact());
  try {
    autograd::backward(square);
  } catch (const Error& error) {
    lesson.print(fmt::format("  a second time on one tape: {}", error.what()));
  }
}

/// Eight multiplications in a row, each of which must keep its input.
Tensor chain(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < 8; ++i) y = autograd::multiply(y, y);
  return y;
}

Tensor recomputed_chain(const Tensor& x) {
  return autograd::recompute([](const std::vector<Tensor>& inputs) { return chain(inputs[0]); },
                             {x});
}

// ## 4. Memory for time
//
// What is saved is most of the memory of training. `recompute` runs a piece without recording,
// keeps only its input, and runs it once more when backward arrives. The gradients are the same
// bytes.
void compare_memory(Lesson& lesson) {
  const Tensor x = normal_tensor(lesson.context(), {64, 64}, 1, 0.25);
  autograd::set_requires_grad(x);
  const Tensor plain = autograd::sum(chain(x));
  const Tensor frugal = autograd::sum(recomputed_chain(x));
  const auto plain_bytes = static_cast<double>(saved_bytes(plain));
  const auto frugal_bytes = static_cast<double>(saved_bytes(frugal));
  lesson.number("saved", "saved by a chain of eight", plain_bytes, exact(), "bytes");
  lesson.number("saved_recompute", "the same with recompute", frugal_bytes, exact(), "bytes");
  autograd::backward(plain);
  const auto first = autograd::grad_of(x).to_vector<float>();
  autograd::zero_grad(x);
  autograd::backward(frugal);
  lesson.number("same", "gradients are the same bytes (1: yes)",
                first == autograd::grad_of(x).to_vector<float>() ? 1 : 0, exact());
  report::BarChart chart;
  chart.title = "Bytes kept for the backward of eight multiplications";
  chart.description = "Two bars; with recompute the bar is an eighth as long.";
  chart.id = "saved";
  chart.value_label = "bytes";
  chart.categories = {"recorded", "recomputed"};
  chart.series = {{"bytes", {plain_bytes, frugal_bytes}, {}}};
  lesson.figure("saved.svg", report::bar_chart(chart));
}

std::string gradients_at_3_5(const ContextPtr& context) {
  const Tensor a = leaf(context, 3.0f);
  const Tensor b = leaf(context, 5.0f);
  autograd::backward(autograd::multiply(autograd::add(autograd::multiply(a, b), b), a));
  return fmt::format("{} {}", gradient(a), gradient(b));
}

std::string entries_of_a_chain(const ContextPtr& context) {
  return fmt::format("{}", autograd::describe_tape(chain(leaf(context, 1.0f))).size());
}

std::string two_halves(const ContextPtr& context) {
  const Tensor x = normal_tensor(context, {64, 64}, 1, 0.25);
  autograd::set_requires_grad(x);
  return fmt::format("{}", saved_bytes(recomputed_chain(recomputed_chain(x))));
}

}  // namespace

int main(int argc, char** argv) {
  return tutorials::run_tutorial(
      "07_autograd",
      {{"Two gradients", differentiate},
       {"The tape", read_the_tape},
       {"Gradients add up", add_gradients},
       {"Memory for time", compare_memory}},
      {{"f = (a·b + b)·a: what are df/da and df/db at a = 3, b = 5?", "2ab + b and a·a + a.",
        gradients_at_3_5},
       {"How many entries does the tape of the chain of stage 4 have for one number?",
        "One for each operation, whatever the size of the tensor.", entries_of_a_chain},
       {"Run two chains of eight in a row, each inside its own recompute: how many bytes are "
        "saved?",
        "Each keeps its input, [64, 64] in fp32.", two_halves}},
      argc, argv);
}
