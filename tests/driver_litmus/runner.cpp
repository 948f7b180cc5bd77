#include "runner.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

namespace ferry::litmus {
namespace {

// A line from child to parent: a kind, a text. Texts have no newlines.
constexpr char driver_line = 'D', no_driver_line = 'P', answer_line = 'A', not_asked_line = 'N', left_line = 'L';

void tell(int to, char kind, const std::string& text) {
  const std::string line = kind + text + "\n";
  std::size_t written = 0;
  while (written < line.size()) {
    const ssize_t more = ::write(to, line.data() + written, line.size() - written);
    if (more <= 0) ::_exit(3);
    written += static_cast<std::size_t>(more);
  }
}

void ask(Lab& lab, const Question& question, int to) {
  try {
    const std::string observed = question.ask(lab);
    if (const std::string left = lab.left_behind(); !left.empty()) tell(to, left_line, left);
    tell(to, answer_line, observed);
  } catch (const NotAsked& reason) {
    tell(to, not_asked_line, reason.what());
  } catch (const std::exception& error) {
    tell(to, answer_line, error.what());
  }
}

[[noreturn]] void be_child(const RunOptions& options, std::vector<const Question*> questions, int to) {
  try {
    Lab lab(options.lab);
    tell(to, driver_line, lab.description());
    for (const Question* question : questions) ask(lab, *question, to);
  } catch (const std::exception& error) {
    tell(to, no_driver_line, error.what());
  }
  ::_exit(0);  // leaves static objects of a driver that a question may have broken alone
}

// The lines that a child writes, one at a time.
class Child {
 public:
  Child(const RunOptions& options, const std::vector<const Question*>& questions)
      : timeout_ms_(options.timeout_s * 1000) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("no process");
    if (pid_ == 0) {
      ::close(ends[0]);
      be_child(options, questions, ends[1]);
    }
    ::close(ends[1]);
    from_ = ends[0];
  }
  ~Child() {
    if (!reaped_) finish();
    ::close(from_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // False when the child is gone or gave no answer in time.
  bool line(std::string& text) {
    for (;;) {
      const std::size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        text = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return true;
      }
      pollfd waiting{from_, POLLIN, 0};
      const int ready = ::poll(&waiting, 1, timeout_ms_);
      char chunk[4096];
      const ssize_t got = ready > 0 ? ::read(from_, chunk, sizeof chunk) : -1;
      if (got <= 0) {
        hung_ = ready == 0;
        return false;
      }
      buffer_.append(chunk, static_cast<std::size_t>(got));
    }
  }
  // How it ended: "no answer in time", "crashed by signal 11".
  std::string finish() {
    if (hung_) ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    reaped_ = true;
    if (hung_) return "no answer in time";
    if (WIFSIGNALED(status)) return "crashed by signal " + std::to_string(WTERMSIG(status));
    return "ended with status " + std::to_string(WEXITSTATUS(status));
  }

 private:
  int timeout_ms_;
  int from_ = -1;
  pid_t pid_ = -1;
  bool hung_ = false, reaped_ = false;
  std::string buffer_;
};

Outcome judge(const Question& question, const std::string& observed, bool any_order) {
  if (question.expected.empty()) return Outcome::agrees;
  const bool as_expected = std::ranges::find(question.expected, observed) != question.expected.end();
  return as_expected || (any_order && question.overlaps) ? Outcome::agrees : Outcome::differs;
}

// Asks from the answer at `next` on until the child ends, and gives the number of answers it found.
void run_child(const RunOptions& options, Run& run, std::size_t& next, std::size_t last) {
  std::vector<const Question*> questions;
  for (std::size_t i = next; i < last; ++i) questions.push_back(run.answers[i].question);
  Child child(options, questions);
  std::string line, left;
  bool started = false;
  while (next < last && child.line(line)) {
    const std::string text = line.substr(1);
    Answer& answer = run.answers[next];
    switch (line[0]) {
      case driver_line:
        started = true;
        run.driver = text;
        break;
      case no_driver_line:
        run.problem = text;
        return;
      case left_line:
        left = text;
        break;
      case not_asked_line:
        answer.observed = text;
        answer.outcome = Outcome::not_asked;
        ++next;
        break;
      default:
        answer.observed = left.empty() ? text : text + "; left behind: " + left;
        answer.outcome = left.empty() ? judge(*answer.question, text, options.any_order) : Outcome::differs;
        left.clear();
        ++next;
    }
  }
  if (next == last) return;
  const std::string end = child.finish();
  if (!started) {
    run.problem = "the driver's start: " + end;
    return;
  }
  run.answers[next].observed = end;
  run.answers[next].outcome = Outcome::differs;
  ++next;
}

}  // namespace

Run run_all(const RunOptions& options) {
  Run run;
  for (const Topic& topic : all_topics()) {
    for (const Question& question : topic.questions) {
      const std::string name = std::string(topic.name) + "/" + question.name;
      if (name.find(options.only) != std::string::npos) run.answers.push_back({topic.name, &question, "", {}});
    }
  }
  for (std::size_t next = 0; next < run.answers.size() && run.problem.empty();) {
    std::size_t last = next + 1;
    if (!run.answers[next].question->alone) {
      while (last < run.answers.size() && !run.answers[last].question->alone) ++last;
    }
    run_child(options, run, next, last);
  }
  return run;
}

}  // namespace ferry::litmus
