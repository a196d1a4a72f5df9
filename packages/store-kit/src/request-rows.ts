/** Rows of requests: reason, author and time limit are a single encryptable value. */
import { crc32 } from "node:zlib";
import type { RunRequest } from "@statewright/core/store";
import { decryptPayload, type Payload, type ThreadCipher, type ValueContext } from "./cipher.ts";
import { createCorruptError } from "./corrupt-error.ts";

/** Columns of a request, with the names of its branch and run. */
export interface RequestColumns {
  readonly id: string;
  readonly branch: string;
  readonly run: string;
  readonly kind: RunRequest["kind"];
  /** Idempotency key. */
  readonly name: string | null;
  readonly at: number;
  readonly handled: number;
  readonly sum: number;
  readonly more: Payload;
}

/** Returns the columns of a request that depend on encryption. */
export function toRequestColumns(
  cipher: ThreadCipher | undefined,
  request: RunRequest,
): { readonly sum: number; readonly more: Payload } {
  const text = toExtrasText(request);
  if (cipher === undefined) return { sum: computeRequestSum(request, text), more: text };
  return { sum: computeRequestSum(request, ""), more: cipher.encrypt(text, toRequestContext(request)) };
}

/** Reads and verifies a request. Throws `store_corrupt` on a checksum mismatch, `missing_key`. */
export function readRequest(cipher: ThreadCipher | undefined, thread: string, columns: RequestColumns): RunRequest {
  const { id, branch, run, kind, name, at, handled, sum } = columns;
  const text = decryptPayload(cipher, thread, columns.more, () => toRequestContext(columns));
  const row = {
    ...{ id, branch, run, kind, at },
    ...(name === null ? {} : { key: name }),
    ...(handled === 0 ? {} : { handled: true as const }),
  };
  if (computeRequestSum(row, cipher === undefined ? text : "") !== sum)
    throw createCorruptError(`the request "${id}" does not match its checksum`, { thread, branch });
  return { ...row, ...(JSON.parse(text) as Pick<RunRequest, "reason" | "by" | "until">) };
}

function toExtrasText({ reason, by, until }: RunRequest): string {
  return JSON.stringify({ reason, by, until });
}

function computeRequestSum({ id, branch, run, kind, key, at, handled }: RunRequest, more: string): number {
  return crc32(JSON.stringify([id, branch, run, kind, key ?? "", at, handled === true, more]));
}

function toRequestContext({ branch, id, run, kind, at }: Omit<RunRequest, "key" | "handled">): ValueContext {
  return ["requests.more", branch, id, run, kind, at];
}
