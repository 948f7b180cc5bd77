// Asks all questions in child processes: a question that crashes or hangs costs its own answer and no other.
#pragma once

#include <string>
#include <vector>

#include "lab.hpp"

namespace ferry::litmus {

enum class Outcome : unsigned char { agrees, differs, not_asked };

struct Answer {
  const char* topic;
  const Question* question;
  std::string observed;
  Outcome outcome = Outcome::differs;
};

struct RunOptions {
  LabOptions lab;
  std::string only;        // questions whose name or topic contains this; empty for all
  bool any_order = false;  // a driver that lets nothing overlap is as good
  int timeout_s = 60;      // for one question
};

struct Run {
  std::string driver;   // its description; empty where there is none
  std::string problem;  // why not
  std::vector<Answer> answers;
};

[[nodiscard]] Run run_all(const RunOptions& options);

}  // namespace ferry::litmus
