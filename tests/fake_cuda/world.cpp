#include "world.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>

#include "faults_of_memory.hpp"
#include "host_pages.hpp"

namespace fake {
namespace {

void before_fork() { world().mutex.lock(); }
void in_parent() {
  World& w = world();
  if (w.settings.copy_on_write_after_fork) {
    for (auto& [begin, registration] : w.host.all()) registration.stale = is_copied_at_fork(begin);
  }
  w.mutex.unlock();
}
void in_child() {
  world().engine.forget_workers();
  world().user_objects.forget_worker();
  world().mutex.unlock();
}

}  // namespace

World& world() {
  static World& only = *new World;
  return only;
}

World::World() : engine(arena, report, mutex), user_objects(engine, report, mutex), captures(report) {
  engine.fault_at_execution = [this](const Operation&) { return faults.at_execution(); };
  engine.context_failed = [this](u64 context_id, Result code) {
    for (std::size_t i = 0; i < primary.size(); ++i) {
      if (primary[i].id != context_id && green[i].id != context_id) continue;
      for (CUctx_st* one : {&primary[i], &green[i]}) {  // they fail together
        if (one->error == success) one->error = code;
        engine.drop(one->id);
      }
    }
  };
  pthread_atfork(before_fork, in_parent, in_child);
}

bool& null_is_per_thread() {
  static thread_local bool meaning = false;
  return meaning;
}

ThreadState::~ThreadState() {
  if (pushes == 0) return;
  World& w = world();
  Lock lock(w.mutex);
  if (epoch != w.epoch) return;
  w.pushed -= pushes;
  w.report.violation(text("a thread ended with ", static_cast<long long>(pushes), " contexts left pushed"));
}

ThreadState& World::thread() {
  static thread_local ThreadState state;
  static u64 last_number = 0;
  if (state.number == 0) state.number = ++last_number;
  if (state.epoch != epoch) {
    state.epoch = epoch;
    state.stack.clear();
    state.pushes = 0;
  }
  return state;
}

Context World::current() {
  const auto& stack = thread().stack;
  return stack.empty() ? nullptr : stack.back();
}

void World::activate(CUctx_st& context) {
  const bool is_green = &context >= green.data() && &context < green.data() + green.size();
  context = CUctx_st{};
  context.device = static_cast<Device>(&context - (is_green ? green : primary).data());
  context.is_green = is_green;
  context.id = ++last_context;
}

void World::destroy(CUctx_st& context, Lock& lock) {
  auto& other = green[static_cast<std::size_t>(context.device)];
  if (!context.is_green && other.alive()) destroy(other, lock);
  for (Graph graph : captures.end_in(context.id)) destroy_graph(*this, graph);
  engine.abandon(context.id, lock);
  const auto live_streams = streams.live();
  for (Stream stream : live_streams) {
    if (stream->context_id == context.id) streams.remove(stream);
  }
  const auto live_events = events.live();
  for (Event event : live_events) {
    if (event->context_id == context.id) events.remove(event);
  }
  for (auto& [begin, allocation] : arena.all()) {
    if (!allocation.freed && allocation.context_id == context.id) arena.free(allocation);
  }
  programs.remove_functions_of(context.id);
  if (!settings.registrations_outlive_context) drop_host_memory(context.id, lock);
  context.references = 0;
  context.legacy = nullptr;
  context.per_thread.clear();
}

void World::drop_host_memory(u64 context_id, Lock& lock) {
  for (const auto& [begin, registration] : host.all()) {
    if (registration.context_id != context_id) continue;
    const auto touches = [number = registration.number](const Access& access) { return access.registration == number; };
    for (const auto& name : engine.pending_on(touches)) {
      report.violation(text("host#", registration.number, " went with its context with pending work: ", name));
    }
    engine.orphan(registration.number);
    engine.wait_until_idle(touches, lock);
  }
  host.drop_with(context_id);
}

void World::fail(Context context, Result code, Lock& lock) {
  for (Context one : with_green(&primary_of(context))) {  // they fail together
    one->error = code;
    engine.abandon(one->id, lock);
  }
}

Result World::identify(Stream handle, Stream& stream) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number > per_thread_handle) {
    if (!streams.knows(handle)) {
      report.violation(streams.was(handle) ? handle->name + " was used after it was destroyed"
                                           : "an unknown stream handle was used");
      return streams.was(handle) && !handle->context->alive() ? context_is_destroyed : invalid_handle;
    }
    stream = handle;
    return success;
  }
  if (number == 0 && from_product()) report.violation("a NULL stream handle was passed");
  const Context context = current();
  if (context == nullptr) return invalid_context;
  if (!context->alive()) return context_is_destroyed;
  const bool per_thread = number == per_thread_handle || (number == 0 && null_is_per_thread());
  Stream& special = per_thread ? context->per_thread[thread().number] : context->legacy;
  if (special == nullptr) {
    special = streams.add(false);
    special->name = per_thread ? text("per-thread#", thread().number) : "legacy";
    special->number = ++last_stream;
    special->context = context;
    special->context_id = context->id;
    special->is_legacy = !per_thread;
  }
  stream = special;
  return success;
}

Result World::resolve(Stream handle, Stream& stream) {
  if (const Result failed = identify(handle, stream); failed != success) return failed;
  return captures.admit(stream);
}

Result World::resolve(Event handle, Event& event) {
  if (!events.knows(handle)) {
    const bool was = events.was(handle);
    report.violation(was ? handle->name() + " was used after it was destroyed" : "an unknown event handle was used");
    return was && !handle->context->alive() ? context_is_destroyed : invalid_handle;
  }
  event = handle;
  return success;
}

std::vector<u64> World::tail_of(Stream stream) const {
  std::vector<u64> tail{stream->last};
  if (!stream->blocking) return tail;
  for (Stream other : streams.live()) {
    if (other->context != stream->context || other == stream || !other->blocking) continue;
    if (stream->is_legacy || other->is_legacy) tail.push_back(other->last);
  }
  return tail;
}

void World::submit_to_capture(Stream stream, Operation operation) {
  operation.context_id = stream->context_id;
  stream->dependencies = {stream->capture->graph->body->add(std::move(operation), stream->dependencies)};
}

u64 World::submit(Stream stream, Operation operation, Lock& lock) {
  if (stream->capture != nullptr) {
    submit_to_capture(stream, std::move(operation));
    return 0;
  }
  if (operation.accepted) operation.accepted();
  if (engine.pending_in(stream->number) >= settings.queue_limit) {
    ++report.counts["blocked_submits"];
    engine.finish_oldest(stream->number, lock);
  }
  const auto tail = tail_of(stream);
  operation.after.insert(operation.after.end(), tail.begin(), tail.end());
  operation.context_id = stream->context_id;
  operation.stream = stream->number;
  stream->last = engine.next_id();  // before it runs: an eager schedule runs it inside
  return engine.enqueue(std::move(operation), lock);
}

void World::look_for_unmapped() {
  for (auto& [begin, registration] : host.all()) {
    if (registration.reported || is_mapped(begin, registration.nbytes)) continue;
    registration.reported = true;
    report.violation(text("host#", registration.number, " was unmapped while registered"));
  }
}

void World::reset(Lock& lock) {
  user_objects.reset(lock);
  engine.reset(lock);
  captures.reset();
  arena.collect_touches(report);
  arena.forget_all();
  host.clear();
  streams.clear();
  events.clear();
  for (Graph graph : graphs.live()) graph->body.reset(), graph->objects.reset();
  for (GraphExec exec : execs.live()) exec->body.reset(), exec->objects.reset();
  graphs.clear();
  execs.clear();
  for (auto* all : {&primary, &green}) {
    for (auto& context : *all) context = CUctx_st{};
  }
  programs.clear();
  faults.clear();
  report.clear();
  settings = Settings{};
  initialized = false;
  pushed = 0;
  ++epoch;
  thread().capture_mode = capture_global;
  last_stream = last_event = last_graph = last_exec = 0;  // context ids are unique for the life of the process
  install_handler();
}

std::string World::name_of(Stream handle) const {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number <= per_thread_handle) return std::array{"NULL", "legacy", "per-thread"}[number];
  return streams.knows(handle) || streams.was(handle) ? handle->name : "unknown";
}

std::string World::name_of(Event handle) const {
  return events.knows(handle) || events.was(handle) ? handle->name() : "unknown";
}

std::string World::name_of(Context handle) const {
  return handle == nullptr ? "NULL" : knows(handle) ? handle->name() : "unknown";
}

std::string World::name_of_memory(std::uintptr_t address) {
  if (const Allocation* found = arena.find(address, 0)) {
    return text("device#", found->number, "+", address - found->begin);
  }
  const auto range = host.classify(address, 1);
  if (range.kind == HostKind::pinned) {
    return text("host#", range.registration->number, "+", address - range.registration->begin);
  }
  return "pageable";
}

}  // namespace fake
