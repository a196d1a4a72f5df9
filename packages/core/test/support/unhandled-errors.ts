/** Errors that reached the process: a test that expects none says so. */
import { afterEach, beforeEach, expect } from "vitest";
import { systemWorld } from "../../src/adapter.ts";

/** Fail each test of this file after which an error has reached the process, by a promise or otherwise. */
export function expectNothingUnhandled(): void {
  const reached: unknown[] = [];
  const note = (error: unknown): void => {
    reached.push(error);
  };
  beforeEach(() => {
    process.on("unhandledRejection", note);
    process.on("uncaughtException", note);
  });
  afterEach(async () => {
    const { soon } = systemWorld().schedule;
    for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => soon(resolve));
    process.off("unhandledRejection", note);
    process.off("uncaughtException", note);
    expect(reached.splice(0)).toEqual([]);
  });
}
