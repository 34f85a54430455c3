#include "kitchen/report/dot_plot.h"
#include "kitchen/report/html_parts.h"
#include "kitchen/report/recipe_comparison.h"
#include "kitchen/report/report_numbers.h"
#include "kitchen/report/xml_escape.h"

#include <fmt/format.h>

#include <cmath>

namespace kitchen::report {
namespace {

DotPlot loss_plot(const RecipeComparison& comparison) {
  const RecipeResult& reference = comparison.recipes[0];
  DotPlot plot;
  plot.title = "Validation loss at the end, by recipe and seed";
  plot.description = fmt::format(
      "One row a recipe, one dot a seed of {}, further right is worse; the numbers are in the "
      "table below.",
      comparison.seeds.size());
  plot.value_label = "validation loss (nats a token)";
  plot.dot_name = "one seed";
  for (const RecipeResult& result : comparison.recipes)
    plot.rows.push_back({result.name, result.losses, result.mean});
  if (!std::isfinite(reference.mean)) return plot;
  plot.reference = reference.mean;
  plot.band_low = reference.mean - reference.spread;
  plot.band_high = reference.mean + reference.spread;
  plot.band_name = fmt::format("mean of {} ± its spread", reference.name);
  return plot;
}

std::string plot_reading(const RecipeComparison& comparison) {
  const std::string& reference = comparison.recipes[0].name;
  return fmt::format(
      "each dot is the validation loss of one run, further left is better; dots of one seed stand "
      "at "
      "the same height within their rows, and the bar is their mean. The dashed line is the mean "
      "of "
      "{}, the grey band reaches from it by the spread of {} over its seeds to both sides. A "
      "bar inside of the band is within the seeds' noise. The axis does not start at zero.",
      reference, reference);
}

std::string table_html(const RecipeComparison& comparison) {
  const std::vector<std::vector<std::string>> rows = comparison_table(comparison);
  HtmlTable table;
  table.caption = "Validation loss in nats a token, and what the runs cost";
  table.header = rows[0];
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const Verdict verdict = comparison.recipes[i - 1].verdict;
    const bool is_apart = verdict == Verdict::worse || verdict == Verdict::better;
    std::vector<HtmlCell> cells;
    for (std::size_t column = 0; column < rows[i].size(); ++column) {
      const bool is_name = column == 0;
      const bool is_verdict = column + 1 == rows[i].size();
      cells.push_back({rows[i][column], !is_name && !is_verdict, is_verdict && is_apart, is_name});
    }
    table.rows.push_back(std::move(cells));
  }
  return html_table(table);
}

std::string judging_html(const RecipeComparison& comparison) {
  const std::string& reference = comparison.recipes[0].name;
  return html_paragraph(fmt::format(
             "Spread is the largest loss minus the smallest over the seeds. A recipe is within the "
             "seeds' noise if its mean is apart from that of {} by no more than the spread of {}. "
             "With {} seed{} this is a rule of thumb and no proof: small true differences stay "
             "hidden, and a second set of seeds may judge close cases differently.",
             reference, reference, comparison.seeds.size(),
             comparison.seeds.size() == 1 ? "" : "s")) +
         html_paragraph(fmt::format("Runs of one seed begin with the same weights and read the "
                                    "same text in the same order, "
                                    "so \"seeds above\" counts how often the recipe ended above {} "
                                    "from the same start. All "
                                    "or none of many seeds points to a difference that is smaller "
                                    "than the noise, but there.",
                                    reference)) +
         html_paragraph(
             "SQNR is signal over quantization noise in decibels, the mean over all operand uses "
             "and runs, taken in the last step; more is better. Tokens a second are the median of "
             "the logged intervals, on this machine, where quantized formats may be emulated.");
}

std::string setting_of(const RecipeComparison& comparison, const std::string& path) {
  for (const auto& [key, value] : comparison.settings) {
    if (key == path) return value;
  }
  return "–";
}

std::string settings_html(const RecipeComparison& comparison) {
  const auto of = [&](const char* path) { return setting_of(comparison, path); };
  HtmlTable table;
  table.caption = "Settings that all runs share";
  table.header = {"setting", "value"};
  for (const auto& [key, value] : comparison.settings)
    table.rows.push_back({{key, false, false, true}, {value, false, false, false}});
  return html_paragraph(fmt::format(
             "A GPT of {} layers, hidden size {}, {} heads, {} steps of {} sequences of {} tokens "
             "from {}.",
             of("model.num_layers"), of("model.hidden_size"), of("model.num_attention_heads"),
             of("training.train_iters"), of("training.global_batch_size"), of("model.seq_length"),
             of("training.data"))) +
         html_details("All settings that the runs share", html_table(table));
}

}  // namespace

std::string comparison_page(const RecipeComparison& comparison) {
  std::string title = "Recipes compared:";
  for (std::size_t i = 0; i < comparison.recipes.size(); ++i)
    title += (i == 0 ? " " : ", ") + comparison.recipes[i].name;
  const DotPlot plot = loss_plot(comparison);
  const auto draw = [&](double width, const std::string& id) {
    DotPlot sized = plot;
    sized.width = width;
    sized.id = id;
    return dot_plot(sized);
  };
  return html_head(title) +
         "<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header>\n<h1>" +
         xml_escape(title) + "</h1>\n<p class=\"lead\">" +
         xml_escape(comparison_headline(comparison)) +
         "</p>\n</header>\n<main id=\"main\" tabindex=\"-1\">\n" +
         html_section(
             "losses", "Loss by recipe and seed",
             html_figure("loss-dots", draw, plot_reading(comparison)) + table_html(comparison)) +
         html_section("judging", "How this is judged", judging_html(comparison)) +
         html_section("settings", "What was trained", settings_html(comparison)) +
         "</main>\n</body>\n</html>\n";
}

}  // namespace kitchen::report
