#include "graph.hpp"

#include <algorithm>

#include "world.hpp"

namespace fake {

GraphBody::~GraphBody() {
  for (const Pointer pointer : memory) {
    Allocation* owner = arena.find(pointer, 0);
    if (owner != nullptr && !owner->freed) arena.free(*owner);
  }
}

GraphNode GraphBody::add(Operation operation, std::vector<GraphNode> after) {
  auto made = std::make_unique<CUgraphNode_st>();
  made->index = nodes.size();
  made->operation = std::move(operation);
  made->after = std::move(after);
  nodes.push_back(std::move(made));
  return nodes.back().get();
}

std::size_t GraphBody::count_outside(const std::vector<GraphNode>& last) const {
  std::vector<bool> inside(nodes.size());
  std::vector<GraphNode> open = last;
  while (!open.empty()) {
    const GraphNode at = open.back();
    open.pop_back();
    if (inside[at->index]) continue;
    inside[at->index] = true;
    open.insert(open.end(), at->after.begin(), at->after.end());
  }
  return static_cast<std::size_t>(std::ranges::count(inside, false));
}

Graph make_graph(World& w) {
  Graph made = w.graphs.add(false);
  made->number = ++w.last_graph;
  made->body = std::make_shared<GraphBody>(w.arena);
  made->objects = std::make_shared<References>(w.user_objects);
  return made;
}

Result destroy_graph(World& w, Graph graph) {
  if (!w.graphs.knows(graph)) return invalid_value;
  if (graph->capturing) {
    w.report.violation(graph->name() + " was destroyed while it was being captured");
    return invalid_value;
  }
  if (graph->of_framework != nullptr) destroy_exec(w, graph->of_framework);
  w.graphs.remove(graph);
  graph->body.reset();
  graph->objects.reset();
  return success;
}

Result instantiate_graph(World& w, Graph graph, GraphExec* exec) {
  if (exec == nullptr || !w.graphs.knows(graph) || graph->capturing) return invalid_value;
  if (!graph->body->memory.empty() && graph->body->executables > 0) return invalid_value;
  ++graph->body->executables;
  GraphExec made = w.execs.add(false);
  made->number = ++w.last_exec;
  made->body = graph->body;
  made->objects = std::make_shared<References>(w.user_objects);
  made->objects->retain_all(*graph->objects);
  *exec = made;
  return success;
}

Result destroy_exec(World& w, GraphExec exec) {
  if (!w.execs.knows(exec)) return invalid_value;
  w.execs.remove(exec);
  --exec->body->executables;
  exec->body.reset();  // launches that are still to run hold it, and the objects
  exec->objects.reset();
  return success;
}

}  // namespace fake
