/** Limits of a server for its clients: bytes, depth, time and counts. */

import { checkOptions, invalidOption, listOptionNames } from "@statewright/core/adapter";

/** Limits of a server. */
export interface McpLimits {
  /** Maximum bytes of a message or of a request body. Default 2,097,152. */
  readonly messageBytes: number;
  /** Maximum nesting depth of a message. Default 72: tool arguments have at most 64 levels. */
  readonly messageLevels: number;
  /**
   * Maximum number of values in the lists and objects of a message. Default 101,000: tool arguments have at most
   * 100,000.
   */
  readonly messageParts: number;
  /** Milliseconds to receive a complete HTTP request. Default 30,000. */
  readonly requestMs: number;
  /** Maximum concurrent calls of a client. Default 32. */
  readonly calls: number;
  /** Maximum milliseconds of a call, without the time that people need for answers. Default 3,600,000. */
  readonly callMs: number;
  /** Maximum milliseconds for the answer of a person. Default 600,000. */
  readonly answerMs: number;
  /**
   * Maximum tool calls that wait for people. Above this limit the oldest waiting call of the client with the most
   * waiting calls is discarded. Default 256.
   */
  readonly waiting: number;
  /**
   * Maximum bytes of structured data in a single result, in addition to the content for the model. Default 1,048,576.
   */
  readonly resultBytes: number;
  /** Maximum bytes of a resource. Default 16,777,216. */
  readonly resourceBytes: number;
  /**
   * Maximum HTTP sessions of a client. Above this limit the oldest session without a running call is closed.
   * Default 32.
   */
  readonly sessions: number;
  /** Idle milliseconds of a session until it may be closed when another session opens. Default 1,800,000. */
  readonly sessionIdleMs: number;
}

const defaultLimits: McpLimits = {
  messageBytes: 2 ** 21,
  messageLevels: 72,
  messageParts: 101_000,
  requestMs: 30_000,
  calls: 32,
  callMs: 3_600_000,
  answerMs: 600_000,
  waiting: 256,
  resultBytes: 2 ** 20,
  resourceBytes: 2 ** 24,
  sessions: 32,
  sessionIdleMs: 1_800_000,
};

const knownLimits = listOptionNames<McpLimits>({
  messageBytes: true,
  messageLevels: true,
  messageParts: true,
  requestMs: true,
  calls: true,
  callMs: true,
  answerMs: true,
  waiting: true,
  resultBytes: true,
  resourceBytes: true,
  sessions: true,
  sessionIdleMs: true,
});

/** Returns the limits with defaults. Throws `invalid_option` for a limit that is not an integer ≥ 1. */
export function resolveLimits(overrides: Partial<McpLimits> = {}): McpLimits {
  checkOptions("serveMcp limits", overrides, knownLimits);
  const limits = { ...defaultLimits, ...overrides };
  for (const [name, limit] of Object.entries(limits)) {
    if (Number.isSafeInteger(limit) && limit >= 1) continue;
    throw invalidOption({ where: "serveMcp", option: `limits.${name}`, expected: "an integer ≥ 1", got: limit });
  }
  return limits;
}

/**
 * Returns the problem of a message as the predicate of a sentence; undefined within the limits. Explores no further
 * than the limits.
 */
export function findMessageProblem(message: unknown, { messageLevels, messageParts }: McpLimits): string | undefined {
  let partsLeft = messageParts;
  const findProblem = (value: unknown, level: number): string | undefined => {
    if (typeof value !== "object" || value === null) return undefined;
    if (Object.hasOwn(value, "__proto__")) return 'has the key "__proto__"';
    if (level > messageLevels) return `is nested deeper than ${messageLevels} levels`;
    const parts: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
    partsLeft -= parts.length;
    if (partsLeft < 0) return `has more than ${messageParts} parts`;
    for (const part of parts) {
      const found = findProblem(part, level + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return findProblem(message, 1);
}
