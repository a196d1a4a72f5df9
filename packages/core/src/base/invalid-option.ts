/** The only constructor of `invalid_option` errors, so that their messages have a single form. */
import { type ErrorCode, type ErrorPlace, StatewrightError } from "./errors.ts";
import { ignoreRejections } from "./ignore-rejections.ts";
import { describeValue } from "./json.ts";

/** Codes of errors about an option. */
export type OptionErrorCode = Extract<ErrorCode, "invalid_option" | "invalid_tool" | "invalid_graph">;

/** Argument of {@link invalidOption}. */
export interface InvalidOption {
  /** Function, builder or definition that received the option, such as `limitCalls` or `tool "search"`. */
  readonly where: string;
  /** Option name; absent for the whole argument. */
  readonly option?: string | undefined;
  /** Noun phrase that completes "must be …", such as `an integer ≥ 1`. */
  readonly expected: string;
  /** Received value, printed as a value: text in quotes, objects and functions by kind. */
  readonly got?: unknown;
  /** Received value in words; printed verbatim, instead of `got`. */
  readonly found?: string;
  /** Imperative sentence without its full stop. Default: `Pass <expected>`. */
  readonly fix?: string;
  readonly code?: OptionErrorCode;
  readonly place?: ErrorPlace;
  readonly details?: unknown;
  readonly cause?: unknown;
}

/** Creates the error of an option with an invalid value: `<where>: expected <expected>, got <value>. <Fix>.` */
export function invalidOption(invalid: InvalidOption): StatewrightError {
  const { where, option, expected, got, fix = `Pass ${expected}`, code = "invalid_option" } = invalid;
  const { found = describeValue(got), place, details, cause } = invalid;
  ignoreRejections(got);
  const fact = option === undefined ? `expected ${expected}` : `\`${option}\` must be ${expected}`;
  return new StatewrightError(code, {
    what: `${where}: ${fact}, got ${found}`,
    next: fix,
    details,
    cause,
    ...(place === undefined ? {} : { place }),
  });
}
