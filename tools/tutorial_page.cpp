/// @file  tutorial_page.cpp
/// @brief Makes one page of the site of a tutorial's README.md, its program and the results of a
/// run.
///
/// Usage: tutorial_page <root> <name> <folder of results.json> <output folder>
/// Writes <name>.md and the figures, renamed NN_<figure>. Exit code: 0 done, 1 something is missing
/// or a text names an unknown result, 2 wrong usage.

#include "source_tree.h"
#include "tutorial_source.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace kitchen::tools {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be read; run the tutorial first");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string formatted(const Json& number) {
  const double value = number.at("value").get<double>();
  const std::string unit = number.at("unit").get<std::string>();
  return fmt::format("{:.{}g}{}{}", value, value == std::floor(value) ? 12 : 4,
                     unit.empty() ? "" : " ", unit);
}

/// The text with {{key}} replaced by the run's number and $...$ by Doxygen's marks for formulas.
/// Code between backticks stays as it is.
std::string filled(const std::string& line, const Json& numbers) {
  std::string out;
  bool in_code = false;
  bool in_formula = false;
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == '`') in_code = !in_code;
    if (!in_code && line.compare(at, 2, "{{") == 0) {
      const std::size_t end = line.find("}}", at);
      const std::string key = line.substr(at + 2, end - at - 2);
      if (!numbers.contains(key)) throw std::runtime_error("no result is called '" + key + "'");
      out += formatted(numbers.at(key));
      at = end + 2;
    } else if (!in_code && line.compare(at, 2, "$$") == 0) {
      out += in_formula ? "\\f]" : "\\f[";
      in_formula = !in_formula;
      at += 2;
    } else if (!in_code && line[at] == '$') {
      out += "\\f$";
      ++at;
    } else {
      out += line[at++];
    }
  }
  return out;
}

class Page {
 public:
  Page(std::string root, const Tutorial& tutorial, const std::string& results_folder)
      : root_(std::move(root)),
        tutorial_(tutorial),
        results_folder_(results_folder),
        results_(Json::parse(read_text(results_folder + "/results.json"))),
        numbers_(results_.at("numbers")) {}

  std::string text() {
    write_head();
    write_prose(tutorial_.introduction);
    write_program();
    write_results();
    write_exercises();
    write_plain_program();
    return out_;
  }

  void copy_figures(const std::string& folder) const {
    for (const Json& figure : results_.at("figures")) {
      const std::string file = figure.at("file").get<std::string>();
      fs::copy_file(results_folder_ + "/" + file, folder + "/" + figure_name(file),
                    fs::copy_options::overwrite_existing);
    }
  }

 private:
  void put(const std::string& line) { out_ += line + "\n"; }
  [[nodiscard]] std::string figure_name(const std::string& file) const {
    return tutorial_.number() + "_" + file;
  }

  void write_head() {
    put(fmt::format("# {} {} {{#tutorial_{}}}\n", tutorial_.number(), tutorial_.title,
                    tutorial_.name));
    put("[All tutorials](@ref tutorials)\n");
    put(fmt::format("- **Goal:** {}", tutorial_.goal));
    std::string bases;
    for (const std::string& base : tutorial_.builds_on) {
      bases += fmt::format("{}@ref tutorial_{}", bases.empty() ? "" : ", ", base);
    }
    put(fmt::format("- **Builds on:** {}", bases.empty() ? "nothing" : bases));
    put(fmt::format("- **New:** {}", joined(tutorial_.introduces)));
    put(fmt::format("- **Time:** about {} minutes", tutorial_.minutes));
    std::string files;
    for (const std::string& file : tutorial_.library) {
      files += fmt::format("{}@ref {} \"{}\"", files.empty() ? "" : ", ", file.substr(4), file);
    }
    put(fmt::format("- **In the library:** {}", files));
    put(fmt::format("- **Run it:** `build/bin/tutorials/{}`\n", tutorial_.name));
    put("@tableofcontents\n");
  }

  static std::string joined(const std::vector<std::string>& items) {
    std::string text;
    for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
    return text;
  }

  void write_prose(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) put_prose(line);
  }

  /// A line of the README: numbers filled in, and the paths into docs/ as the site takes them.
  void put_prose(std::string line) {
    // The site finds images by name alone, and other pages where their sources are.
    const std::string images = "../../docs/images/";
    const std::string pages = "../../docs/";
    const std::size_t image = line.find(images);
    if (image != std::string::npos) line.erase(image, images.size());
    const std::size_t page = line.find(pages);
    if (page != std::string::npos) line.replace(page, pages.size(), root_ + "/docs/");
    put(filled(line, numbers_));
  }

  /// Comment blocks at column 0 become prose, the lines between them code. A block after code needs
  /// a blank line before it, as the stages of a program have; a comment inside code stays code.
  void write_program() {
    put("\n## The program\n");
    bool in_code = false;
    for (std::size_t i = 0; i < tutorial_.program.size(); ++i) {
      const std::string& line = tutorial_.program[i];
      const bool is_prose = starts_with(line, "// ") || line == "//";
      if (is_prose == in_code) {
        if (!is_prose && trimmed(line).empty()) continue;
        put(in_code ? "```\n" : "\n```cpp");
        in_code = !is_prose;
      }
      if (!is_prose) {
        put(line);
      } else if (starts_with(line, "// ## ")) {
        put("#" + line.substr(3));
      } else {
        put(line == "//" ? "" : filled(line.substr(3), numbers_));
      }
    }
    if (in_code) put("```\n");
  }

  void write_results() {
    put("## Results {#results_" + tutorial_.name + "}\n");
    put(fmt::format("Everything below was made by running the program (backend {}).\n",
                    results_.at("backend").get<std::string>()));
    for (const Json& figure : results_.at("figures")) {
      put(fmt::format("![{}]({})\n", figure.at("title").get<std::string>(),
                      figure_name(figure.at("file").get<std::string>())));
    }
    put("It printed:\n\n```text");
    std::istringstream output(read_text(results_folder_ + "/output.txt"));
    for (std::string line; std::getline(output, line);) {
      if (!starts_with(line, "  figure: ")) put(line);
    }
    put("```\n");
  }

  /// An answer and the lines below it, up to a blank line, are folded away.
  void write_exercises() {
    bool in_answer = false;
    for (const std::string& line : tutorial_.exercises) {
      if (starts_with(line, "Answer: ")) {
        // Markdown of Doxygen 1.9.4 closes <details> at the first paragraph; marked as HTML it
        // stays.
        put("@htmlonly<details><summary>Answer</summary>@endhtmlonly\n");
        put(line.substr(8) + "<br>");
        in_answer = true;
      } else {
        if (in_answer && trimmed(line).empty()) {
          put("\n@htmlonly</details>@endhtmlonly");
          in_answer = false;
        }
        put_prose(line);
      }
    }
    put(fmt::format("\nCheck an answer with `build/bin/tutorials/{} --exercise 1 --answer ...`.\n",
                    tutorial_.name));
  }

  void write_plain_program() {
    put("## The plain program\n\n```cpp");
    for (const std::string& line : tutorial_.program) {
      if (!starts_with(line, "// ") && line != "//") put(line);
    }
    put("```");
  }

  std::string root_;
  const Tutorial& tutorial_;
  std::string results_folder_;
  Json results_;
  Json numbers_;
  std::string out_;
};

}  // namespace
}  // namespace kitchen::tools

int main(int argc, char** argv) {
  using namespace kitchen::tools;
  if (argc != 5) {
    std::cerr << "usage: tutorial_page <root> <name> <results folder> <output folder>\n";
    return 2;
  }
  try {
    const Tutorial tutorial = read_tutorial(argv[1], argv[2]);
    const std::string output = argv[4];
    std::filesystem::create_directories(output);
    Page page(argv[1], tutorial, argv[3]);
    std::ofstream file(output + "/" + tutorial.name + ".md", std::ios::binary);
    file << page.text();
    if (!file.flush()) throw std::runtime_error(output + ": cannot be written");
    page.copy_figures(output);
  } catch (const std::exception& error) {
    std::cerr << "tutorial_page: " << argv[2] << ": " << error.what() << '\n';
    return 1;
  }
  return 0;
}
