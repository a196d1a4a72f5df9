/** How much of one tool result a model sees. */
import { StatewrightError } from "../../base/errors.ts";
import { describeValue } from "../../base/json.ts";
import { checkOptions } from "../../base/options.ts";

/**
 * What the model sees of one result, in bytes: UTF-8 of text, of data as JSON and of previews, and the base64 text of
 * images and files.
 */
export interface ResultLimits {
  /** Of all blocks of a result together. Default 51,200. */
  readonly resultBytes?: number;
  /** A block of text or data with more is kept whole as an artifact, and the model sees a preview of at most so many bytes. Default 8,192. */
  readonly artifactBytes?: number;
}

/** The limits where nothing else is said: 8 KiB and 50 KiB. */
export const defaultLimits: Required<ResultLimits> = Object.freeze({ artifactBytes: 8_192, resultBytes: 51_200 });

/** Smaller limits have no room for the words that say what was cut. */
const smallest = 512;

/** Throws for limits that are not whole numbers from 512. */
export function checkLimits(owner: string, limits: unknown, code: "invalid_option" | "invalid_tool"): void {
  if (limits === undefined) return;
  checkOptions(`the limits of ${owner}`, limits, ["resultBytes", "artifactBytes"], code);
  for (const [name, value] of Object.entries(limits as object)) {
    if (value === undefined || (Number.isInteger(value) && value >= smallest)) continue;
    throw new StatewrightError(code, {
      what: `${name} in the limits of ${owner} is ${describeValue(value)}`,
      next: `Give a whole number of bytes from ${smallest}, or leave it out`,
    });
  }
}
