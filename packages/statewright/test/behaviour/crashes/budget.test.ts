/** SIGKILL of a process whose agent and sub-agents share a budget; the next process continues with the rest. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CrashOutcome, killAt, runUntilDone } from "@statewright/testing";
import { afterAll, expect, test } from "vitest";

const script = new URL("../../support/processes/budget-process.ts", import.meta.url);
const home = mkdtempSync(join(tmpdir(), "statewright-budget-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function place(name: string): string {
  const path = join(home, name.replaceAll(" ", "-"));
  mkdirSync(path);
  return path;
}

const spent = { status: "done", turns: 4, extended: { turns: 2 } };

function getEnd({ stdout }: CrashOutcome): { readonly tokens: number } {
  return JSON.parse(stdout);
}

test("a budget killed at its commits is spent to its limit, extended by an answer, and counts every request", async () => {
  const whole = await runUntilDone({ script, folder: place("whole") });
  expect(getEnd(whole)).toEqual({ ...spent, tokens: 40 });
  expect(whole.effects).toHaveLength(4);
  const commits = whole.processes[0]?.points.filter((point) => point.startsWith("before")).length ?? 0;
  expect(commits).toBeGreaterThan(3);
  const points = [`before commit ${Math.ceil(commits / 2)}`, `after commit ${commits - 1}`, `after commit ${commits}`];
  for (const point of points) {
    const killed = await killAt({ script, folder: place(point), point });
    const end = getEnd(killed);
    expect([point, end]).toMatchObject([point, spent]);
    // At most two requests were in flight and are repeated. The cost of a request is known once its entry is saved.
    expect([point, killed.effects.length <= 6, end.tokens >= 40, end.tokens <= killed.effects.length * 10]).toEqual([
      point,
      true,
      true,
      true,
    ]);
  }
  const answered = await killAt({ script, folder: place("answered"), point: "after commit 2", processNumber: 2 });
  expect(getEnd(answered)).toMatchObject(spent);
});
