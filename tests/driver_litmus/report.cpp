#include "report.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace ferry::litmus {
namespace {

const char* word(Outcome outcome) {
  switch (outcome) {
    case Outcome::agrees:
      return "agrees";
    case Outcome::differs:
      return "DIFFERS";
    default:
      return "not asked";
  }
}

const char* word(Basis basis) {
  switch (basis) {
    case Basis::documented:
      return "documented";
    case Basis::assumed:
      return "assumed";
    default:
      return "open";
  }
}

std::string joined(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : " | ") + one;
  return text.empty() ? "any" : text;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

Tally tally(const Run& run) {
  Tally count;
  for (const Answer& answer : run.answers) {
    ++(answer.outcome == Outcome::agrees    ? count.agrees
       : answer.outcome == Outcome::differs ? count.differs
                                            : count.not_asked);
  }
  return count;
}

std::string table(const Run& run, bool differences_only) {
  std::ostringstream out;
  std::size_t name = 0, expected = 0;
  for (const Answer& answer : run.answers) {
    name = std::max(name, std::string(answer.question->name).size());
    expected = std::max(expected, std::min<std::size_t>(40, joined(answer.question->expected).size()));
  }
  out << run.driver << '\n';
  const char* topic = "";
  for (const Answer& answer : run.answers) {
    if (differences_only && answer.outcome != Outcome::differs) continue;
    if (std::string(topic) != answer.topic) out << '\n' << (topic = answer.topic) << '\n';
    out << "  " << padded(word(answer.outcome), 10) << padded(answer.question->name, name + 2)
        << padded(word(answer.question->basis), 12) << padded(joined(answer.question->expected), expected + 2)
        << answer.observed << '\n';
    if (answer.outcome == Outcome::differs) out << "            " << answer.question->rule << '\n';
  }
  const Tally count = tally(run);
  out << '\n'
      << run.answers.size() << " questions: " << count.agrees << " agree, " << count.differs << " differ, "
      << count.not_asked << " not asked\n";
  return out.str();
}

std::string json(const Run& run) {
  std::ostringstream out;
  out << "{\n \"driver\": " << quoted(run.driver) << ",\n \"questions\": [";
  const char* separator = "\n";
  for (const Answer& answer : run.answers) {
    out << separator << "  {\"topic\": " << quoted(answer.topic) << ", \"name\": " << quoted(answer.question->name)
        << ", \"rule\": " << quoted(answer.question->rule) << ", \"basis\": " << quoted(word(answer.question->basis))
        << ", \"expected\": [";
    const char* comma = "";
    for (const std::string& one : answer.question->expected) {
      out << comma << quoted(one);
      comma = ", ";
    }
    out << "], \"observed\": " << quoted(answer.observed) << ", \"outcome\": " << quoted(word(answer.outcome)) << "}";
    separator = ",\n";
  }
  const Tally count = tally(run);
  out << "\n ],\n \"agree\": " << count.agrees << ", \"differ\": " << count.differs
      << ", \"not_asked\": " << count.not_asked << "\n}\n";
  return out.str();
}

}  // namespace ferry::litmus
