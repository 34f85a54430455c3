#include "kitchen/report/report_sections.h"

#include "kitchen/report/html_parts.h"
#include "kitchen/report/report_figures.h"
#include "kitchen/report/report_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace kitchen::report {
namespace {

constexpr int kMaxTableRows = 24;
constexpr std::size_t kMaxNamedRuns = 3;

std::optional<double> final_loss(const RunSummary& run) {
  const MetricPoint* point = run.final_validation();
  return point == nullptr ? std::nullopt : point->val_loss;
}

std::optional<double> tokens_seen(const RunSummary& run) {
  for (auto point = run.metrics.rbegin(); point != run.metrics.rend(); ++point) {
    if (point->tokens) return point->tokens;
  }
  return std::nullopt;
}

HtmlCell number_cell(std::string text) {
  return {std::move(text), true, false, false};
}
HtmlCell header_cell(std::string text) {
  return {std::move(text), false, false, true};
}
HtmlCell text_cell(std::string text) {
  return {std::move(text), false, false, false};
}

bool has_drawable_series(const LineChart& chart) {
  return std::any_of(chart.series.begin(), chart.series.end(),
                     [](const LineSeries& s) { return !s.x.empty(); });
}

std::string line_figure(const std::string& id, LineChart chart, const std::string& reading,
                        double height = 400.0) {
  return html_figure(
      id,
      [&](double width, const std::string& chart_id) {
        LineChart sized = chart;
        sized.id = chart_id;
        sized.width = width;
        sized.height = width < 500.0 ? 330.0 : height;
        return line_chart(sized);
      },
      reading);
}

/// The curves of `chart` as a table of at most kMaxTableRows steps, the last one among them.
std::string numbers_of(const LineChart& chart, int decimals) {
  std::map<double, std::map<std::string, double>> rows;
  HtmlTable table;
  table.caption = chart.title;
  table.header = {"step"};
  for (const LineSeries& series : chart.series) {
    if (series.is_background) continue;
    table.header.push_back(series.name);
    for (std::size_t i = 0; i < series.x.size(); ++i) rows[series.x[i]][series.name] = series.y[i];
  }
  const int stride = static_cast<int>((rows.size() + kMaxTableRows - 1) / kMaxTableRows);
  int left = static_cast<int>(rows.size());
  for (const auto& [step, values] : rows) {
    if (--left % std::max(stride, 1) != 0) continue;
    std::vector<HtmlCell> row = {{count_text(static_cast<std::int64_t>(step)), true, false, true}};
    for (std::size_t i = 1; i < table.header.size(); ++i) {
      const auto found = values.find(table.header[i]);
      row.push_back(
          number_cell(found == values.end() ? "–" : number_text(found->second, decimals)));
    }
    table.rows.push_back(std::move(row));
  }
  const std::string summary = stride > 1
                                  ? fmt::format("Numbers of this figure (one step in {})", stride)
                                  : std::string("Numbers of this figure");
  return html_details(summary, html_table(table));
}

/// Absent for the first run itself, and where the last measurements are of different steps.
std::optional<double> difference_to_first(const RunSummary& run, const RunSummary& first) {
  const MetricPoint* last = run.final_validation();
  const MetricPoint* base = first.final_validation();
  if (&run == &first || last == nullptr || base == nullptr || last->step != base->step)
    return std::nullopt;
  return relative_percent(last->val_loss, base->val_loss);
}

std::string headline_of_many(const std::vector<RunSummary>& runs) {
  const RunSummary* best = nullptr;
  for (const RunSummary& run : runs) {
    const auto loss = final_loss(run);
    if (loss && std::isfinite(*loss) && (best == nullptr || *loss < *final_loss(*best)))
      best = &run;
  }
  if (best == nullptr)
    return fmt::format("{} runs, none of which measured a finite validation loss.", runs.size());
  return fmt::format("{} runs; the lowest final validation loss is {:.4f}, of {} after {} steps.",
                     runs.size(), *final_loss(*best), best->name, best->final_validation()->step);
}

std::vector<HtmlCell> result_row(const RunSummary& run, const RunSummary& first) {
  const std::optional<double> loss = final_loss(run);
  const std::optional<double> tokens = tokens_seen(run);
  const auto whole = [](std::optional<double> value) {
    const bool is_count = value && *value >= 0.0 && *value < 1e15;
    return is_count ? count_text(static_cast<std::int64_t>(*value + 0.5)) : number_text(value, 0);
  };
  return {header_cell(run.name),
          number_cell(number_text(loss, 4)),
          number_cell(percent_text(difference_to_first(run, first))),
          number_cell(number_text(loss ? std::optional<double>(std::exp(*loss)) : std::nullopt, 3)),
          number_cell(run.metrics.empty() ? "–" : count_text(run.metrics.back().step)),
          number_cell(whole(tokens)),
          number_cell(whole(median_of(run, &MetricPoint::tokens_per_s))),
          text_cell(run.recipe())};
}

/// Warns where the runs did not see as much text, since then their losses are not to be compared.
std::string fairness_note(const std::vector<RunSummary>& runs) {
  for (const RunSummary& run : runs) {
    const bool same_steps =
        run.metrics.empty() == runs[0].metrics.empty() &&
        (run.metrics.empty() || run.metrics.back().step == runs[0].metrics.back().step);
    if (!same_steps || tokens_seen(run) != tokens_seen(runs[0])) {
      return "<p class=\"notes\">The runs differ in steps or tokens: compare their curves at the "
             "same step, not their last values.</p>\n";
    }
  }
  return "";
}

std::string difference_figure(const std::vector<RunSummary>& runs) {
  const LineChart chart = difference_chart(runs);
  if (!has_drawable_series(chart)) return "";
  const std::string reading = fmt::format(
      "The same measurements, with the first run subtracted, so that a small gap becomes "
      "visible. Above zero is worse than {}. A gap that keeps growing points at the recipe; "
      "one that wavers around zero is noise.",
      runs[0].name);
  return line_figure("loss-difference", chart, reading, 300.0) + numbers_of(chart, 4);
}

}  // namespace

std::string headline(const std::vector<RunSummary>& runs) {
  if (runs.size() > kMaxNamedRuns) return headline_of_many(runs);
  std::string text;
  for (const RunSummary& run : runs) {
    const MetricPoint* last = run.final_validation();
    if (!text.empty()) text += ' ';
    if (last == nullptr) {
      text += fmt::format("{} measured no validation loss.", run.name);
    } else if (!std::isfinite(*last->val_loss)) {
      text += fmt::format("{} diverged: after {} steps its validation loss is not finite.",
                          run.name, last->step);
    } else {
      const auto percent = difference_to_first(run, runs[0]);
      text += fmt::format("{} ends at a validation loss of {:.4f} after {} steps{}.", run.name,
                          *last->val_loss, last->step,
                          percent && std::isfinite(*percent)
                              ? fmt::format(", {} against {}", percent_text(percent), runs[0].name)
                              : "");
    }
  }
  return text;
}

ReportSection results_section(const std::vector<RunSummary>& runs) {
  HtmlTable table;
  table.caption =
      "One row a run; the difference is that of the final validation loss to the first run";
  table.header = {
      "run",   "final validation loss", "difference", "perplexity", "steps", "tokens", "tokens/s",
      "recipe"};
  for (const RunSummary& run : runs) table.rows.push_back(result_row(run, runs[0]));
  std::string html = html_table(table);
  if (runs.size() > 1) {
    html += fairness_note(runs) +
            html_paragraph(
                "A difference means something only if it exceeds the spread between seeds: train "
                "each recipe with several seeds before you call one better. Tokens/s is the median "
                "over the log lines and belongs to the machine that ran.");
  }
  return {"results", "Results", html};
}

ReportSection loss_section(const std::vector<RunSummary>& runs, const ReportOptions& options) {
  constexpr const char* kLossLabel = "loss (nats a token)";
  std::string html;
  LineChart training =
      smoothed(metric_chart(runs, &MetricPoint::train_loss, "Training loss by step", kLossLabel));
  training.y.is_log = options.log_loss;
  if (has_drawable_series(training)) {
    std::string reading =
        "The thin light line is the loss of each step, which jumps because each step sees "
        "other text; the strong line is its mean over about 2 % of the steps around. Lower is "
        "better.";
    if (runs.size() > 1) {
      reading += " Curves on top of each other mean that the recipe costs nothing here.";
    }
    html += line_figure("training-loss", training, reading) + numbers_of(training, 4);
  }
  LineChart validation =
      metric_chart(runs, &MetricPoint::val_loss, "Validation loss by step", kLossLabel);
  validation.y.is_log = options.log_loss;
  for (LineSeries& series : validation.series) series.marks_points = true;
  if (has_drawable_series(validation)) {
    const std::string reading =
        "One marker for each measurement on text that the model never learned from. If it "
        "rises while the training loss falls, the model learns its text by heart.";
    html += line_figure("validation-loss", validation, reading) + numbers_of(validation, 4);
  }
  return {"loss", "Loss", html + difference_figure(runs)};
}

ReportSection course_section(const std::vector<RunSummary>& runs) {
  std::string html;
  LineChart norm = smoothed(
      metric_chart(runs, &MetricPoint::grad_norm, "Gradient norm by step", "norm (log scale)"));
  norm.y.is_log = true;
  if (has_drawable_series(norm)) {
    html += line_figure("gradient-norm", norm,
                        "The size of the gradient before clipping, on a logarithmic axis; thin "
                        "for each step, strong for the mean around. A single peak is a hard "
                        "batch; a rise without return, or a gap where values were not finite, "
                        "is where a run went wrong.",
                        320.0) +
            numbers_of(norm, 4);
  }
  const LineChart rate =
      metric_chart(runs, &MetricPoint::lr, "Learning rate by step", "learning rate");
  if (has_drawable_series(rate)) {
    html += line_figure("learning-rate", rate,
                        "The schedule. Compared runs should lie on one curve, else the "
                        "comparison tells nothing about the recipe.",
                        260.0) +
            numbers_of(rate, 6);
  }
  return {"course", "How the training went", html};
}

ReportSection time_section(const std::vector<RunSummary>& runs) {
  const BarChart chart = op_time_chart(runs);
  if (chart.categories.empty()) return {"time", "Time by op", ""};
  HtmlTable table;
  table.caption = "Calls and seconds by run and op";
  table.header = {"run", "op", "calls", "seconds", "µs a call"};
  for (const RunSummary& run : runs) {
    for (const OpTime& time : run.op_times) {
      const auto per_call =
          time.calls > 0
              ? std::optional<double>(1e6 * time.seconds / static_cast<double>(time.calls))
              : std::nullopt;
      table.rows.push_back(
          {header_cell(run.name), text_cell(time.op), number_cell(count_text(time.calls)),
           number_cell(number_text(time.seconds, 3)), number_cell(number_text(per_call, 1))});
    }
  }
  const auto draw = [&](double width, const std::string& id) {
    BarChart sized = chart;
    sized.width = width;
    sized.id = id;
    return bar_chart(sized);
  };
  return {"time", "Time by op",
          html_figure("op-time", draw,
                      "Where the run spent its time, the longest op first. A quantized recipe "
                      "adds casts and gains in the GEMMs, but only on hardware that multiplies "
                      "in its formats; elsewhere it shows what the recipe does to the loss, "
                      "not to the time.") +
              html_details("Numbers of this figure", html_table(table))};
}

}  // namespace kitchen::report
