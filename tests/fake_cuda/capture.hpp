// Captures that are going on, and what invalidates them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph.hpp"
#include "handles.hpp"
#include "report.hpp"
#include "types.hpp"

namespace fake {

struct Capture {
  u64 id = 0;
  int mode = capture_global;
  u64 thread = 0;  ///< that began it
  Stream origin = nullptr;
  std::string name;             ///< of the origin
  std::vector<Stream> streams;  ///< the origin, and what joined it
  Graph graph = nullptr;
  bool invalidated = false;
  std::string culprit;
};

class Captures {
 public:
  explicit Captures(Report& report) : report_(report) {}

  void begin(Stream origin, int mode, u64 thread, Graph graph);
  void join(Capture& capture, Stream stream);
  /// Its streams are as they were before; how it ended is noted.
  void end(Capture& capture, const std::string& how);
  void leave(Capture& capture, Stream stream);
  /// In the name of the call that the calling thread is in. The product must never do that: a violation.
  void invalidate(Capture& capture);
  /// Null for a capture that has ended.
  Capture* find(u64 id) const;

  /// May work be put into this stream, or captured in it?
  Result admit(Stream stream);
  /// May this stream be asked or waited for?
  Result admit_question(Stream stream);
  /// A call that is potentially unsafe: refused, and the captures that mind are invalidated.
  Result refuse_unsafe(u64 thread, int mode);
  /// A call that takes in all streams of these contexts.
  Result refuse_in(const std::vector<Context>& contexts);
  /// True if the legacy stream of the context is unusable because a blocking stream is capturing.
  bool blocks_legacy(Context context) const;
  /// The context dies: captures of its streams end. Gives their graphs, which nobody gets.
  std::vector<Graph> end_in(u64 context_id);

  std::int64_t live() const { return static_cast<std::int64_t>(ongoing_.size()); }
  /// One line for each capture since the last reset: "stream#2 global ongoing".
  std::vector<std::string> lines() const;
  void reset();

 private:
  static std::string describe(const Capture& capture);

  Report& report_;
  std::vector<std::unique_ptr<Capture>> ongoing_;
  std::vector<std::string> ended_;
  u64 last_ = 0;
};

struct World;

Result begin_capture(World& w, Stream handle, int mode);
Result end_capture(World& w, Stream handle, Graph* graph);

}  // namespace fake
