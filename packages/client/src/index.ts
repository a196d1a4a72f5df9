/** Typed client of a Statewright server. */
export { ClientError, type FieldError } from "./client-error.ts";
export { type Client, type ClientOptions, createClient } from "./create-client.ts";
export { foldOpenText } from "./fold-open-text.ts";
export type { AnswersOf, GraphMap, InputOf, ValuesOf } from "./graph-types.ts";
export type { Fetch, Runtime } from "./runtime.ts";
export type { ScheduleCalls } from "./schedule-calls.ts";
export type * from "./server-types.ts";
export type { AnswerOptions, CallOptions, RunCallOptions, ThreadClient } from "./thread-client.ts";
export type { EventOptions } from "./thread-events.ts";
