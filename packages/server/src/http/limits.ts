/** Limits of requests and streams. */
import { checkOptions, invalidOption, listOptionNames } from "@statewright/core/adapter";

/** Limits of a server. Each is an integer ≥ 1. */
export interface ServerLimits {
  /** Maximum bytes of a body. Default 1,048,576. */
  readonly bodyBytes: number;
  /** Maximum bytes of a body with files. Default 10,485,760. */
  readonly fileBytes: number;
  /** Maximum nesting depth of a body. Default 64. */
  readonly bodyLevels: number;
  /** Maximum number of values in the lists and objects of a body. Default 100,000. */
  readonly bodyNodes: number;
  /** Maximum messages in a request. Default 1,000. */
  readonly messages: number;
  /** Maximum answers in a request. Default 200. */
  readonly answers: number;
  /** Maximum characters of a URL. Default 4,096. */
  readonly urlLength: number;
  /** Maximum bytes of all headers. Default 16,384. */
  readonly headerBytes: number;
  /** Milliseconds to receive a body. Default 30,000. */
  readonly bodyMs: number;
  /** Maximum open streams of a caller. Default 32. */
  readonly streamsPerCaller: number;
  /** Maximum open streams of the process. Default 5,000. */
  readonly streams: number;
}

/** Default limits. */
const defaultLimits: ServerLimits = Object.freeze({
  bodyBytes: 2 ** 20,
  fileBytes: 10 * 2 ** 20,
  bodyLevels: 64,
  bodyNodes: 100_000,
  messages: 1_000,
  answers: 200,
  urlLength: 4_096,
  headerBytes: 16_384,
  bodyMs: 30_000,
  streamsPerCaller: 32,
  streams: 5_000,
});

const knownLimits = listOptionNames<ServerLimits>({
  bodyBytes: true,
  fileBytes: true,
  bodyLevels: true,
  bodyNodes: true,
  messages: true,
  answers: true,
  urlLength: true,
  headerBytes: true,
  bodyMs: true,
  streamsPerCaller: true,
  streams: true,
});

/** Returns the limits with defaults. Throws `invalid_option` for an unknown limit, or one that is no integer ≥ 1. */
export function resolveLimits(overrides: Partial<ServerLimits> = {}): ServerLimits {
  checkOptions("serve limits", overrides, knownLimits);
  const limits = { ...defaultLimits, ...overrides };
  for (const [name, limit] of Object.entries(limits))
    if (!Number.isSafeInteger(limit) || limit < 1)
      throw invalidOption({ where: "serve", option: `limits.${name}`, expected: "an integer ≥ 1", got: limit });
  return limits;
}
