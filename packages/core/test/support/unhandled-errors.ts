/** Fails tests after unhandled errors of the process. */
import { afterEach, beforeEach, expect } from "vitest";
import { systemWorld } from "../../src/adapter.ts";

/** Fails each test of the file after which an unhandled rejection or exception has reached the process. */
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
