/** What a server takes from its clients at most: bytes, depth, time and counts. */
import { checkOptions, optionNames, StatewrightError } from "@statewright/core";

/** The limits of a server. */
export interface McpLimits {
  /** Bytes of one message, or of the body of one request. Default 2,097,152. */
  readonly messageBytes: number;
  /** How deep a message may be nested. Default 72: arguments of tools have 64 levels. */
  readonly messageLevels: number;
  /** Values in the lists and objects of one message. Default 101,000: arguments of tools have 100,000. */
  readonly messageParts: number;
  /** Milliseconds in which a request over HTTP must have come whole. Default 30,000. */
  readonly requestMs: number;
  /** Calls that one client may have at work at the same time. Default 32. */
  readonly calls: number;
  /** Milliseconds that one call may take; people who are asked do not count. Default 3,600,000. */
  readonly callMs: number;
  /** Milliseconds in which a person must have answered. Default 600,000. */
  readonly answerMs: number;
  /** Calls of tools that may wait for people at the same time; of more, the oldest of the client with the most is given up. Default 256. */
  readonly waiting: number;
  /** Bytes of the data that one result may hold beside what is shown to a model. Default 1,048,576. */
  readonly resultBytes: number;
  /** Bytes of one resource. Default 16,777,216. */
  readonly resourceBytes: number;
  /** Sessions that one client may have over HTTP; of more, the oldest without a call at work ends. Default 32. */
  readonly sessions: number;
  /** Milliseconds without a request after which a session ends when another one is opened. Default 1,800,000. */
  readonly sessionIdleMs: number;
}

const usual: McpLimits = {
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

const names = optionNames<McpLimits>({
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

/** The limits with what was given in the place of the usual ones. Throws `invalid_option` for what is no whole number from 1. */
export function limitsOf(given: Partial<McpLimits> = {}): McpLimits {
  checkOptions("the limits of serveMcp", given, names);
  const limits = { ...usual, ...given };
  for (const [name, limit] of Object.entries(limits)) {
    if (Number.isSafeInteger(limit) && limit >= 1) continue;
    throw new StatewrightError("invalid_option", {
      what: `the limit ${name} of serveMcp is ${String(limit)}`,
      next: "Give a whole number from 1",
    });
  }
  return limits;
}

/** Why a message is not taken, as the rest of a sentence about it; nothing for one that is within the limits. It walks no further than they reach. */
export function unfitMessage(message: unknown, { messageLevels, messageParts }: McpLimits): string | undefined {
  let partsLeft = messageParts;
  const over = (value: unknown, level: number): string | undefined => {
    if (typeof value !== "object" || value === null) return undefined;
    if (Object.hasOwn(value, "__proto__")) return 'has the key "__proto__"';
    if (level > messageLevels) return `is nested deeper than ${messageLevels} levels`;
    const parts: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
    partsLeft -= parts.length;
    if (partsLeft < 0) return `has more than ${messageParts} parts`;
    for (const part of parts) {
      const found = over(part, level + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return over(message, 1);
}
