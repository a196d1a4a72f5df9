/** Headers of requests: idempotency keys, preferences, conditions and the place in a stream. */
import { createRequestProblem } from "./request-problems.ts";

const idPattern = /^[A-Za-z0-9_.:-]{1,128}$/;

/**
 * Returns the idempotency key of a request: the header `Idempotency-Key`, quoted or not, or the key of the body. Throws
 * a problem (422) for two different keys, and for a key outside of the grammar of ids.
 */
export function readKey({ headers }: Request, bodyKey: string | undefined): string | undefined {
  const header = headers.get("idempotency-key");
  if (header === null) return bodyKey;
  const key = header.trim().replace(/^"(.*)"$/, "$1");
  if (!idPattern.test(key))
    throw createRequestProblem({ detail: "Idempotency-Key: expected 1 to 128 of A-Z a-z 0-9 _ . : -." });
  if (bodyKey !== undefined && bodyKey !== key)
    throw createRequestProblem({ detail: "The key of the body differs from the header Idempotency-Key." });
  return key;
}

/** True for a request that asks for a stream of events. */
export function acceptsEvents({ headers }: Request): boolean {
  return (headers.get("accept") ?? "").split(",").some((type) => /^\s*text\/event-stream\s*(?:;|$)/i.test(type));
}

/** Maximum seconds that a request waits. */
const maxWaitSeconds = 60;

/** Returns the milliseconds of `Prefer: wait=N`, at most 60,000; undefined without the preference. */
export function readWaitMs({ headers }: Request): number | undefined {
  const seconds = /(?:^|,|;)\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|,|;)/i.exec(headers.get("prefer") ?? "")?.[1];
  return seconds === undefined ? undefined : Math.min(Number(seconds), maxWaitSeconds) * 1_000;
}

/** Formats a value as a strong entity tag. */
export function formatEtag(value: string | number): string {
  return `"${value}"`;
}

/** True when a header such as `If-None-Match` names the tag, or any tag. Weak tags are equal to strong ones. */
export function matchesEtag(header: string | null, etag: string): boolean {
  if (header === null) return false;
  const tags = header.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes("*") || tags.includes(etag);
}

/**
 * Returns the number after which a stream of events begins: the header `Last-Event-ID`, which wins, or the parameter.
 * Throws a problem (422) for a header that is no number.
 */
export function readLastEventId({ headers }: Request, after: number | undefined): number | undefined {
  const header = headers.get("last-event-id");
  if (header === null || header === "") return after;
  if (/^\d{1,15}$/.test(header)) return Number(header);
  throw createRequestProblem({ detail: "Last-Event-ID: expected the id of a frame of this stream." });
}
