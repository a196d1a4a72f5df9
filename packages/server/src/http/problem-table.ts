/** Status, form and title of each failure: one table for all protocols, exhaustive over the error codes of core. */
import type { ErrorCode } from "@statewright/core";
import type { Problem } from "./problem.ts";

/** Codes of failures of the server itself. */
export type ServerCode =
  | "invalid_json"
  | "invalid_request"
  | "not_found"
  | "method_not_allowed"
  | "not_acceptable"
  | "request_timeout"
  | "checkpoint_changed"
  | "body_too_large"
  | "url_too_long"
  | "headers_too_large"
  | "unsupported_media_type"
  | "unauthorized"
  | "forbidden"
  | "read_only"
  | "misdirected_request"
  | "origin_refused"
  | "unknown_graph"
  | "unknown_artifact"
  | "unknown_message"
  | "unknown_file"
  | "too_many_files"
  | "schedule_exists"
  | "too_many_schedules"
  | "interval_too_short"
  | "event_unknown"
  | "nothing_to_do"
  | "too_many_requests"
  | "too_many_streams"
  | "access_ended"
  | "identity_unavailable"
  | "draining"
  | "body_was_read"
  | "internal";

/** Code of a problem. */
export type ProblemCode = ErrorCode | ServerCode;

/** Kind of a failure: what its sender can do about it. */
export type ProblemKind =
  | "malformed"
  | "mediaType"
  | "unfit"
  | "unauthenticated"
  | "forbidden"
  | "unknown"
  | "conflict"
  | "late"
  | "tooLarge"
  | "tooMany"
  | "unavailable"
  | "refused"
  | "internal";

/** Failure as each protocol shows it. */
export interface ProblemRow {
  readonly kind: ProblemKind;
  /** Status of the native API and of the AI SDK stream. */
  readonly status: number;
  /** Status of the LangGraph protocol. */
  readonly langgraph: number;
  /** Sentence of the code, the same for every occurrence. */
  readonly title: string;
}

/** Status by kind: of the native API, and of the LangGraph protocol, whose clients repeat what is not in 400 to 422. */
const statuses: { readonly [Kind in ProblemKind]: readonly [native: number, langgraph: number] } = {
  malformed: [400, 422],
  mediaType: [415, 415],
  unfit: [422, 422],
  unauthenticated: [401, 401],
  forbidden: [403, 403],
  unknown: [404, 404],
  conflict: [409, 409],
  late: [410, 409],
  tooLarge: [413, 413],
  tooMany: [429, 429],
  unavailable: [503, 503],
  refused: [405, 405],
  internal: [500, 500],
};

function createRow(
  kind: ProblemKind,
  title: string,
  status: { readonly native?: number; readonly langgraph?: number } = {},
): ProblemRow {
  const [native, langgraph] = statuses[kind];
  return { kind, title, status: status.native ?? native, langgraph: status.langgraph ?? status.native ?? langgraph };
}

const internal: ProblemRow = createRow("internal", "The server failed. Its log has the details.");

/** Row of each code. A code without a row does not compile. */
export const problemTable: { readonly [Code in ProblemCode]: ProblemRow } = {
  invalid_json: createRow("malformed", "The body is not valid JSON."),
  invalid_request: createRow("unfit", "The request does not have the expected form."),
  not_found: createRow("unknown", "The server has no such resource."),
  method_not_allowed: createRow("refused", "The resource does not accept this method."),
  not_acceptable: createRow("refused", "The server cannot answer in an accepted media type.", { native: 406 }),
  request_timeout: createRow("malformed", "The request was not received in time.", { native: 408 }),
  checkpoint_changed: createRow("conflict", "The newest checkpoint is another one.", { native: 412, langgraph: 409 }),
  body_too_large: createRow("tooLarge", "The body is too large."),
  url_too_long: createRow("tooLarge", "The URL is too long.", { native: 414 }),
  headers_too_large: createRow("tooLarge", "The headers are too large.", { native: 431 }),
  unsupported_media_type: createRow("mediaType", "The body does not have an accepted media type."),
  unauthorized: createRow("unauthenticated", "The request has no valid credential."),
  forbidden: createRow("forbidden", "The caller does not have the right to this action."),
  read_only: createRow("forbidden", "The server only reads."),
  misdirected_request: createRow("refused", "The host name is not one of this server.", { native: 421 }),
  origin_refused: createRow("forbidden", "The origin is not allowed."),
  unknown_graph: createRow("unknown", "The server has no such graph."),
  unknown_artifact: createRow("unknown", "The thread has no such artifact."),
  unknown_message: createRow("unknown", "The thread has no such message."),
  unknown_file: createRow("unfit", "The thread has no such file."),
  too_many_files: createRow("unfit", "The thread has too many waiting files."),
  schedule_exists: createRow("conflict", "The id of the schedule is in use."),
  too_many_schedules: createRow("unfit", "The tenant has too many schedules."),
  interval_too_short: createRow("unfit", "The runs of the schedule are too close to each other."),
  event_unknown: createRow("conflict", "The thread has no event with this number yet."),
  nothing_to_do: createRow("conflict", "There is nothing to do."),
  too_many_requests: createRow("tooMany", "The caller has made too many requests."),
  too_many_streams: createRow("tooMany", "Too many streams are open."),
  access_ended: createRow("unauthenticated", "The right to read this stream has ended."),
  identity_unavailable: createRow("unavailable", "The identity provider cannot be reached."),
  draining: createRow("unavailable", "The server is stopping and starts no more runs."),
  body_was_read: createRow("internal", "Another handler has read the body before the server."),
  internal,

  invalid_id: createRow("unfit", "An id does not match the grammar."),
  invalid_input: createRow("unfit", "The input does not fit the state."),
  invalid_context: createRow("unfit", "The context does not match the graph."),
  invalid_answer: createRow("unfit", "An answer does not match the schema of its interrupt."),
  ambiguous_answer: createRow("unfit", "Several open interrupts have the answered key."),
  key_reused: createRow("unfit", "The key belongs to a run with another input."),
  invalid_export: createRow("unfit", "The export is damaged or was changed."),
  invalid_option: createRow("unfit", "An option has an invalid value."),
  invalid_update: createRow("unfit", "The changes do not fit the state."),
  unknown_channel: createRow("unfit", "The state has no such channel."),
  undeclared_write: createRow("unfit", "The node does not declare the changed channel."),
  channel_conflict: createRow("unfit", "A channel was changed twice in one superstep."),
  unencodable_value: createRow("unfit", "A value cannot be saved."),

  unknown_thread: createRow("unknown", "The server has no such thread."),
  unknown_checkpoint: createRow("unknown", "The thread has no such checkpoint."),
  unknown_branch: createRow("unknown", "The thread has no such branch."),
  unknown_interrupt: createRow("unknown", "The thread has no such open interrupt."),
  unknown_run: createRow("unknown", "The server has no such run."),
  unknown_schedule: createRow("unknown", "The server has no such schedule."),

  thread_busy: createRow("conflict", "The thread has a run at work.", { langgraph: 422 }),
  thread_exists: createRow("conflict", "The id of the thread or branch is in use."),
  run_exists: createRow("conflict", "The thread has a run with this key or id."),
  already_answered: createRow("conflict", "The interrupt has an answer."),
  interrupt_changed: createRow("conflict", "The interrupt has changed."),
  graph_changed: createRow("conflict", "Another graph wrote the thread."),
  needs_migration: createRow("conflict", "Another version of the graph wrote the thread."),
  event_refused: createRow("conflict", "The run does not accept the event in its state."),
  parked: createRow("conflict", "The run is parked until an operator continues it."),
  fenced: createRow("conflict", "Another process owns the thread."),
  interrupt_expired: createRow("late", "The interrupt has expired."),

  engine_stopped: createRow("unavailable", "The engine has stopped."),
  drained: createRow("unavailable", "The run stopped because its process stops."),
  store_locked: createRow("unavailable", "The store is locked."),
  store_full: createRow("unavailable", "The store is full."),
  store_unreachable: createRow("unavailable", "The store is unreachable."),
  store_closed: createRow("unavailable", "The store is closed."),
  store_read_only: createRow("forbidden", "The store only reads."),

  invalid_graph: internal,
  invalid_state: internal,
  invalid_tool: internal,
  async_schema: internal,
  missing_secret: internal,
  missing_store: internal,
  migration_failed: internal,
  invalid_output: internal,
  timer_pending: internal,
  dead_route: internal,
  empty_fan_out: internal,
  repeated_step: internal,
  node_failed: internal,
  step_limit: internal,
  machine_failed: internal,
  task_timeout: internal,
  effect_in_doubt: internal,
  breakpoint: internal,
  model_failed: internal,
  invalid_transcript: internal,
  tool_failed: internal,
  plugin_failed: internal,
  untrusted_configuration: internal,
  mcp_failed: internal,
  store_failed: internal,
  store_corrupt: internal,
  store_newer: internal,
  missing_key: internal,
  store_exists: internal,
  store_missing: internal,
  store_mixed: internal,
};

/** Returns true for a code with a row. */
export function isProblemCode(code: string): code is ProblemCode {
  return Object.hasOwn(problemTable, code);
}

/** Creates a problem with the status and the title of its code. */
export function createProblem(
  code: ProblemCode,
  parts: Pick<Problem, "detail" | "errors" | "retryAfterMs" | "headers"> = {},
): Problem {
  const { status, title } = problemTable[code];
  return { status, code, title, ...parts };
}
