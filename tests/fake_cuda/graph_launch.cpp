// Launches: the nodes of a graph become operations, with the parameters that they were captured with.
#include <algorithm>

#include "graph.hpp"
#include "world.hpp"

namespace fake {
namespace {

bool is_registered(World& w, u64 number) {
  return std::ranges::any_of(w.host.all(), [&](const auto& at) { return at.second.number == number; });
}

/// Memory may have gone since the capture. Device memory is judged when the node runs.
void judge_host_memory(World& w, const CUgraphNode_st& node, const std::string& who) {
  for (const Access& access : node.operation.accesses) {
    if (access.registration == 0 || is_registered(w, access.registration)) continue;
    w.report.violation(
        text(who, " uses host#", access.registration, " after it was unregistered: ", node.operation.name));
    w.engine.orphan(access.registration);
  }
}

bool is_alive(const World& w, u64 context_id) {
  return context_id == 0 ||
         std::ranges::any_of(w.contexts(), [&](const CUctx_st* one) { return one->id == context_id && one->alive(); });
}

void replay_into_capture(GraphExec exec, Stream stream) {
  std::vector<GraphNode> made, leaves;
  GraphBody& into = *stream->capture->graph->body;
  for (const auto& node : exec->body->nodes) {
    std::vector<GraphNode> after;
    for (const GraphNode before : node->after) after.push_back(made[before->index]);
    if (after.empty()) after = stream->dependencies;
    GraphNode copy = into.add(node->operation, after);
    copy->event = node->event;
    copy->event_number = node->event_number;
    copy->records = node->records;
    std::erase_if(leaves, [&](GraphNode leaf) { return std::ranges::count(copy->after, leaf) > 0; });
    made.push_back(copy);
    leaves.push_back(copy);
  }
  if (!leaves.empty()) stream->dependencies = leaves;
  stream->capture->graph->objects->retain_all(*exec->objects);
}

}  // namespace

Result launch_graph(World& w, GraphExec exec, Stream stream, Lock& lock) {
  if (!w.execs.knows(exec)) return invalid_value;
  for (const auto& node : exec->body->nodes) {
    if (!is_alive(w, node->operation.context_id)) return context_is_destroyed;
  }
  if (stream->capture != nullptr) {
    replay_into_capture(exec, stream);
    return success;
  }
  std::vector<u64> before = w.tail_of(stream), ids;
  before.push_back(exec->last);
  const auto body = exec->body;  // an eager schedule runs nodes inside
  for (const auto& node : body->nodes) {
    judge_host_memory(w, *node, exec->name());
    Operation operation = node->operation;
    for (const GraphNode earlier : node->after) operation.after.push_back(ids[earlier->index]);
    if (node->after.empty()) operation.after = before;
    const bool has_event = w.events.knows(node->event) && node->event->number == node->event_number;
    if (has_event && !node->records) operation.after.push_back(node->event->captured);
    if (operation.accepted && w.settings.replays_poison) operation.accepted();
    ids.push_back(w.engine.enqueue(std::move(operation), lock));
    if (has_event && node->records) {
      node->event->captured = ids.back();
      node->event->capture = 0;
    }
  }
  Operation end;
  end.name = text("end of ", exec->name(), " in ", stream->name);
  end.after = ids;
  end.after.push_back(exec->last);
  end.finally = [body, objects = exec->objects] {};
  exec->last = w.submit(stream, std::move(end), lock);
  return success;
}

}  // namespace fake
