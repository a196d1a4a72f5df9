/** Matcher of crash matrices: a single assertion over every crash point of a run. */
import { expect } from "vitest";
import type { CrashMatrix } from "../crash/crash-report.ts";

/** Matcher for the result of `crashMatrix`. */
export interface CrashMatchers<Result> {
  /**
   * Passes when no crash lost, repeated or changed anything: `expect(await crashMatrix(program)).toSurviveCrashes()`.
   */
  toSurviveCrashes(): Result;
}

declare module "vitest" {
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown> extends CrashMatchers<R> {}
}

/** Registers the matcher in vitest. Importing `@statewright/testing/vitest` calls this function. */
export function addCrashMatcher(): void {
  expect.extend({
    toSurviveCrashes: (received: unknown) => {
      const matrix = requireCrashMatrix(received);
      return { pass: matrix.survived, message: () => matrix.text };
    },
  });
}

function requireCrashMatrix(received: unknown): CrashMatrix {
  if (typeof received === "object" && received !== null && "survived" in received && "repeated" in received)
    return received as CrashMatrix;
  throw new TypeError(
    "toSurviveCrashes: expected a crash matrix, got another value. Use expect(await crashMatrix(program)).toSurviveCrashes().",
  );
}
