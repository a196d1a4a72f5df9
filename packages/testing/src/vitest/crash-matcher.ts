/** The matcher of crash matrices: one assertion over every point at which a run may die. */
import { expect } from "vitest";
import type { CrashMatrix } from "../crash/crash-report.ts";

/** The matcher for what `crashMatrix` gives. */
export interface CrashMatchers<Result> {
  /** No crash lost, repeated or changed anything: `expect(await crashMatrix(program)).toSurviveCrashes()`. */
  toSurviveCrashes(): Result;
}

declare module "vitest" {
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown> extends CrashMatchers<R> {}
}

/** Make the matcher known to vitest. Importing `@statewright/testing/vitest` does it. */
export function addCrashMatcher(): void {
  expect.extend({
    toSurviveCrashes: (received: unknown) => {
      const matrix = asMatrix(received);
      return { pass: matrix.survived, message: () => matrix.text };
    },
  });
}

function asMatrix(received: unknown): CrashMatrix {
  if (typeof received === "object" && received !== null && "survived" in received && "repeated" in received)
    return received as CrashMatrix;
  throw new TypeError(
    "toSurviveCrashes looks at a crash matrix: expect(await crashMatrix(program)).toSurviveCrashes()",
  );
}
