#include "question.hpp"

namespace ferry::litmus {

std::vector<Topic> all_topics() {
  return {
      {"driver table", loader_questions()},
      {"error words", error_questions()},
      {"contexts", context_questions()},
      {"streams", stream_questions()},
      {"events", event_questions()},
      {"events and contexts", event_context_questions()},
      {"legacy stream", legacy_questions()},
      {"copies", copy_questions()},
      {"pageable memory", pageable_questions()},
      {"registration", registration_questions()},
      {"mapped memory", mapping_questions()},
      {"pointer facts", pointer_questions()},
      {"freeing", freeing_questions()},
      {"capture", capture_questions()},
      {"capture, conflicts", capture_conflict_questions()},
      {"capture, several streams", capture_join_questions()},
      {"graphs", graph_questions()},
      {"launches", launch_questions()},
      {"reset", reset_questions()},
  };
}

}  // namespace ferry::litmus
