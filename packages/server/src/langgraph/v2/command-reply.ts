/** Replies to commands of the streaming events protocol. */
import type { Problem } from "../../http/problem.ts";
import { isProblemCode, type ProblemKind, problemTable } from "../../http/problem-table.ts";
import { toProblem } from "../../http/to-problem.ts";
import type { WireObject } from "../to-wire-message.ts";
import { getLastFrameSeq } from "./v2-frame.ts";

/** Codes of the errors of commands. */
export type V2ErrorCode =
  | "invalid_argument"
  | "unknown_command"
  | "no_such_run"
  | "no_such_namespace"
  | "no_such_interrupt"
  | "no_such_checkpoint"
  | "permission_denied"
  | "not_supported";

/** Error that a command ends with. */
export class CommandError extends Error {
  readonly code: V2ErrorCode;

  constructor(code: V2ErrorCode, message: string) {
    super(message);
    this.name = "CommandError";
    this.code = code;
  }
}

/** Result of a command, and the number of the newest durable event before its effect. */
export interface CommandResult {
  readonly result: WireObject;
  readonly after?: number | undefined;
}

/** Formats the reply to a command that has succeeded. Interrupts up to `applied_through_seq` are older than the command. */
export function formatSuccess(id: number, thread: string, { result, after }: CommandResult): WireObject {
  const applied = after === undefined ? {} : { applied_through_seq: getLastFrameSeq(after) };
  return { type: "success", id, result, meta: { thread_id: thread, ...applied } };
}

/** Error code of each kind of failure; undefined for failures that the response shows with a status. */
const codes: Readonly<Record<ProblemKind, V2ErrorCode | undefined>> = {
  malformed: "invalid_argument",
  mediaType: "invalid_argument",
  unfit: "invalid_argument",
  unauthenticated: undefined,
  forbidden: "permission_denied",
  unknown: "no_such_run",
  conflict: "invalid_argument",
  late: "no_such_interrupt",
  tooLarge: "invalid_argument",
  tooMany: undefined,
  unavailable: undefined,
  refused: "not_supported",
  internal: undefined,
};

const codesByProblem: Readonly<Record<string, V2ErrorCode>> = {
  unknown_interrupt: "no_such_interrupt",
  already_answered: "no_such_interrupt",
  interrupt_changed: "no_such_interrupt",
  unknown_checkpoint: "no_such_checkpoint",
  unknown_branch: "no_such_checkpoint",
  checkpoint_changed: "no_such_checkpoint",
};

/**
 * Formats the reply to a command that has failed. Throws failures of the server, and those that pass with time: clients
 * see them by the status of the response.
 */
export function formatFailedCommand(id: number | null, error: unknown): WireObject {
  if (error instanceof CommandError) return { type: "error", id, error: error.code, message: error.message };
  const problem = toProblem(error);
  const code = findErrorCode(problem);
  if (code === undefined) throw error;
  return { type: "error", id, error: code, message: problem.detail ?? problem.title, code: problem.code };
}

/** Formats the last event of a stream that has failed. */
export function formatStreamFailure(problem: Problem): WireObject {
  const error = findErrorCode(problem) ?? "unknown_error";
  return { type: "error", id: null, error, message: problem.detail ?? problem.title, code: problem.code };
}

function findErrorCode({ code }: Problem): V2ErrorCode | undefined {
  if (!isProblemCode(code)) return undefined;
  return Object.hasOwn(codesByProblem, code) ? codesByProblem[code] : codes[problemTable[code].kind];
}
