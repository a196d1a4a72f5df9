/** Size limits of tool results for a model. */

import { invalidOption } from "../../base/invalid-option.ts";
import { checkOptions } from "../../base/options.ts";

/**
 * Size limits of a result for the model, in bytes: UTF-8 of text, of data as JSON and of previews; base64 of images
 * and files.
 */
export interface ResultLimits {
  /** Limit of all blocks of a result. Default 51,200. */
  readonly resultBytes?: number;
  /**
   * Limit of a text or data block. A larger block is stored as an artifact, and the model sees a preview of at most
   * this size. Default 8,192.
   */
  readonly artifactBytes?: number;
}

/** Default limits: 8 KiB per block and 50 KiB per result. */
export const defaultLimits: Required<ResultLimits> = Object.freeze({ artifactBytes: 8_192, resultBytes: 51_200 });

/** Smaller limits have no room for the truncation notice. */
const minLimitBytes = 512;

/** Throws for limits other than integers from 512. */
export function checkLimits(owner: string, limits: unknown, code: "invalid_option" | "invalid_tool"): void {
  if (limits === undefined) return;
  checkOptions(`the limits of ${owner}`, limits, ["resultBytes", "artifactBytes"], { code });
  for (const [name, value] of Object.entries(limits as object)) {
    if (value === undefined || (Number.isInteger(value) && value >= minLimitBytes)) continue;
    throw invalidOption({
      where: `the limits of ${owner}`,
      option: name,
      expected: `an integer ≥ ${minLimitBytes}`,
      got: value,
      fix: `Use an integer number of bytes from ${minLimitBytes}, or omit the limit`,
      code,
    });
  }
}
