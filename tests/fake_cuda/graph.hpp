// Graphs: what a capture has recorded, and what launches replay.
#pragma once

#include <memory>
#include <vector>

#include "arena.hpp"
#include "engine.hpp"
#include "handles.hpp"
#include "user_objects.hpp"

struct CUgraphNode_st {
  std::size_t index = 0;
  fake::Operation operation;  ///< as it was when it was captured
  std::vector<fake::GraphNode> after;
  fake::Event event = nullptr;  ///< of an external record or wait
  fake::u64 event_number = 0;
  bool records = false;
};

namespace fake {

/// Nodes in the order of the capture, which is an order in which they may run. Never changed after the capture.
struct GraphBody {
  explicit GraphBody(Arena& owner) : arena(owner) {}
  GraphBody(const GraphBody&) = delete;
  GraphBody& operator=(const GraphBody&) = delete;
  ~GraphBody();

  GraphNode add(Operation operation, std::vector<GraphNode> after);
  /// Nodes that are neither among `last` nor come before any of them.
  std::size_t count_outside(const std::vector<GraphNode>& last) const;

  Arena& arena;
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  std::vector<Pointer> memory;  ///< of its allocation nodes; lives as long as the graph
  int executables = 0;
};

}  // namespace fake

struct CUgraph_st {
  fake::u64 number = 0;
  std::shared_ptr<fake::GraphBody> body;
  std::shared_ptr<fake::References> objects;
  bool capturing = false;
  fake::GraphExec of_framework = nullptr;  ///< what a framework has instantiated for its replays

  std::string name() const { return "graph#" + std::to_string(number); }
};

struct CUgraphExec_st {
  fake::u64 number = 0;
  std::shared_ptr<fake::GraphBody> body;
  std::shared_ptr<fake::References> objects;
  fake::u64 last = 0;  ///< the end of its newest launch

  std::string name() const { return "exec#" + std::to_string(number); }
};

namespace fake {

struct World;

Graph make_graph(World& w);
Result destroy_graph(World& w, Graph graph);
Result instantiate_graph(World& w, Graph graph, GraphExec* exec);
Result destroy_exec(World& w, GraphExec exec);
/// Put all of it behind the stream's work; in a stream that is capturing its nodes become nodes of that capture.
Result launch_graph(World& w, GraphExec exec, Stream stream, Lock& lock);

}  // namespace fake
