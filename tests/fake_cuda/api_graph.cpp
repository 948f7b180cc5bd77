// Graphs and user objects.
#include <limits>

#include "api.hpp"
#include "call.hpp"
#include "graph.hpp"

namespace fake {
namespace {

constexpr unsigned known_instantiate_flags = 15, no_destructor_sync = 1, move_references = 1;

std::string name_of_graph(const World& w, Graph graph) { return w.graphs.knows(graph) ? graph->name() : "unknown"; }
std::string name_of_exec(const World& w, GraphExec exec) { return w.execs.knows(exec) ? exec->name() : "unknown"; }

bool is_count(unsigned count) { return count > 0 && count <= unsigned{std::numeric_limits<int>::max()}; }

}  // namespace

Result cuGraphInstantiate(GraphExec* exec, Graph graph, unsigned long long flags) {
  const auto arguments = [&](World& w) { return text(" ", name_of_graph(w, graph)); };
  return call("cuGraphInstantiate", Needs::context, arguments, [&](World& w, Lock&) {
    return flags > known_instantiate_flags ? invalid_value : instantiate_graph(w, graph, exec);
  });
}

Result cuGraphLaunch(GraphExec exec, Stream stream) {
  const auto arguments = [&](World& w) { return text(" ", name_of_exec(w, exec), " stream=", w.name_of(stream)); };
  return call("cuGraphLaunch", Needs::context, arguments, [&](World& w, Lock& lock) {
    Stream at = nullptr;
    if (const Result failed = w.resolve(stream, at); failed != success) return failed;
    return launch_graph(w, exec, at, lock);
  });
}

Result cuGraphDestroy(Graph graph) {
  const auto arguments = [&](World& w) { return text(" ", name_of_graph(w, graph)); };
  return call("cuGraphDestroy", Needs::init, arguments, [&](World& w, Lock&) { return destroy_graph(w, graph); });
}

Result cuGraphExecDestroy(GraphExec exec) {
  const auto arguments = [&](World& w) { return text(" ", name_of_exec(w, exec)); };
  return call("cuGraphExecDestroy", Needs::init, arguments, [&](World& w, Lock&) { return destroy_exec(w, exec); });
}

Result cuUserObjectCreate(UserObject* object, void* data, HostFunction destroy, unsigned references, unsigned flags) {
  const auto arguments = [&](World&) { return text(" references=", references); };
  return call("cuUserObjectCreate", Needs::init, arguments, [&](World& w, Lock&) {
    if (object == nullptr || destroy == nullptr || !is_count(references)) return invalid_value;
    if (flags != no_destructor_sync) return invalid_value;
    *object = w.user_objects.create(data, destroy, references);
    return success;
  });
}

Result cuUserObjectRetain(UserObject object, unsigned count) {
  const auto arguments = [&](World&) { return text(" count=", count); };
  return call("cuUserObjectRetain", Needs::init, arguments, [&](World& w, Lock&) {
    if (!w.user_objects.knows(object) || !is_count(count)) return invalid_value;
    w.user_objects.count(object, count);
    return success;
  });
}

Result cuUserObjectRelease(UserObject object, unsigned count) {
  const auto arguments = [&](World&) { return text(" count=", count); };
  return call("cuUserObjectRelease", Needs::init, arguments, [&](World& w, Lock&) {
    if (!w.user_objects.knows(object)) w.report.violation("a user object was released that is gone");
    if (!w.user_objects.knows(object) || !is_count(count)) return invalid_value;
    w.user_objects.count(object, -static_cast<std::int64_t>(count));
    return success;
  });
}

Result cuGraphRetainUserObject(Graph graph, UserObject object, unsigned count, unsigned flags) {
  const auto arguments = [&](World& w) {
    return text(" ", name_of_graph(w, graph), " count=", count, " flags=", flags);
  };
  return call("cuGraphRetainUserObject", Needs::init, arguments, [&](World& w, Lock&) {
    if (!w.graphs.knows(graph) || !w.user_objects.knows(object) || !is_count(count)) return invalid_value;
    if (flags > move_references) return invalid_value;
    flags == move_references ? graph->objects->adopt(object, count) : graph->objects->retain(object, count);
    return success;
  });
}

}  // namespace fake
