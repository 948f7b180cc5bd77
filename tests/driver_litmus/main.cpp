// Small questions to a driver, and where its answers differ from what this project assumes.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>

#include "report.hpp"

namespace {

using namespace ferry::litmus;

constexpr const char* usage =
    "usage: ferry_driver_litmus [options] [LIBRARY]\n"
    "LIBRARY is the driver to ask; without it TENSORFERRY_LIBCUDA, else libcuda.so.1.\n"
    "  --json [FILE]     print JSON instead of the table, or write it to FILE beside the table\n"
    "  --only TEXT       ask what has TEXT in 'topic/name'\n"
    "  --differences     print only what differs\n"
    "  --complete        a question that cannot be asked counts as a difference\n"
    "  --any-order       accept a driver that lets no two streams overlap\n"
    "  --long-ms N       how long the device is kept busy where overlap must show (30)\n"
    "  --preset NAME     of the fake driver; may be repeated\n"
    "  --schedule NAME   of the fake driver: lazy, eager, shuffled, threaded\n"
    "exit status: 0 all answers agree, 1 some differ, 2 there is no usable driver, 64 wrong usage\n";

struct Arguments {
  RunOptions run;
  bool json = false, differences = false, complete = false;
  std::string json_file;
};

std::optional<Arguments> parse(int count, char** values) {
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string given = values[i];
    const bool more = i + 1 < count;
    if (given == "--json") {
      if (more && std::string(values[i + 1]).ends_with(".json")) {
        arguments.json_file = values[++i];
      } else {
        arguments.json = true;
      }
    } else if (given == "--differences") {
      arguments.differences = true;
    } else if (given == "--complete") {
      arguments.complete = true;
    } else if (given == "--any-order") {
      arguments.run.any_order = true;
    } else if (given == "--only" && more) {
      arguments.run.only = values[++i];
    } else if (given == "--long-ms" && more) {
      arguments.run.lab.long_work_ms = std::atof(values[++i]);
    } else if (given == "--preset" && more) {
      arguments.run.lab.presets.emplace_back(values[++i]);
    } else if (given == "--schedule" && more) {
      arguments.run.lab.schedule = values[++i];
    } else if (given.starts_with("-") || !arguments.run.lab.library.empty()) {
      return std::nullopt;
    } else {
      arguments.run.lab.library = given;
    }
  }
  if (arguments.run.lab.library.empty()) {
    const char* named = std::getenv("TENSORFERRY_LIBCUDA");
    arguments.run.lab.library = named != nullptr && *named != '\0' ? named : "libcuda.so.1";
  }
  return arguments;
}

}  // namespace

int main(int count, char** values) {
  const auto arguments = parse(count, values);
  if (!arguments) {
    std::cerr << usage;
    return 64;
  }
  const Run run = run_all(arguments->run);
  if (!run.problem.empty()) {
    std::cerr << arguments->run.lab.library << ": no usable driver: " << run.problem << '\n';
    return 2;
  }
  if (run.answers.empty()) {
    std::cerr << "no question has that in its name\n";
    return 64;
  }
  std::cout << (arguments->json ? json(run) : table(run, arguments->differences));
  if (!arguments->json_file.empty()) std::ofstream(arguments->json_file) << json(run);
  const Tally found = tally(run);
  return found.differs == 0 && (!arguments->complete || found.not_asked == 0) ? 0 : 1;
}
