#include "kitchen/report/report_sections.h"
#include "kitchen/report/xml_escape.h"

#include <fmt/format.h>

namespace kitchen::report {

namespace {

struct Entry {
  const char* term;
  const char* meaning;
};
constexpr Entry kEntries[] = {
    {"Token",
     "The unit of text that the model reads and predicts. With the byte tokenizer a token is "
     "one byte, and a loss a token is a loss a byte."},
    {"Loss, in nats a token",
     "Minus the natural logarithm of the probability that the model gave to the token that "
     "came, averaged over tokens. 0 is certainty; guessing among 256 bytes costs ln 256 = "
     "5.545 nats. One nat is 1 / ln 2 = 1.443 bits."},
    {"Training and validation loss",
     "Training loss is measured on the text that the step learns from, validation loss on text "
     "that is never learned from. Only the latter tells how well the model does on new text."},
    {"Perplexity",
     "e to the power of the loss: between how many equally likely tokens the model hesitates."},
    {"Recipe",
     "The table that says for each operand of each GEMM in which format and with which scales "
     "it is held."},
    {"Operand x, w, g",
     "The three tensors of a linear layer: activation x, weight w, gradient g of the output."},
    {"fprop, dgrad, wgrad",
     "The three GEMMs (matrix products) of a linear layer: output from x and w; gradient of x "
     "from g and w; gradient of w from g and x."},
    {"SQNR",
     "Signal-to-quantization-noise ratio, 10 log10(sum x² / sum (x − q)²) in decibels, where q "
     "is x after quantization. Larger is better; 20 dB means an error of 10 % of the signal in "
     "the root mean square, 40 dB one of 1 %."},
    {"Saturated",
     "Share of the elements that were beyond the largest number of the format and became that "
     "number."},
    {"Underflowed", "Share of the elements that were not zero and became zero."},
    {"Gradient norm",
     "Root of the sum of all squared gradients, before clipping. Jumps announce trouble; a "
     "quantized run should stay near the other one."},
    {"Learning rate", "Factor of a step's update. It rises in the warm-up and then decays."}};

}  // namespace

ReportSection glossary_section() {
  std::string html = "<dl>\n";
  for (const Entry& entry : kEntries) {
    html +=
        fmt::format("<dt>{}</dt><dd>{}</dd>\n", xml_escape(entry.term), xml_escape(entry.meaning));
  }
  return {"glossary", "Terms", html + "</dl>\n"};
}

}  // namespace kitchen::report
