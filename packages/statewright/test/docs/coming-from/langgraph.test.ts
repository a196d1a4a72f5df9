import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the LangGraph migration program has the result of the LangGraph original", async () => {
  const folder = await mkdtemp(join(tmpdir(), "from-langgraph-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const printed = await runProgram(new URL("langgraph.ts", import.meta.url), { cwd: folder });
  expect(printed.split("\n")).toEqual([
    "bees [ 'bees' ]",
    "3",
    "[ 'bees', 'ants' ]",
    "[ 'ants', 'shipped' ]",
    "{ about: 'bees' }",
    "done [ 'yes' ]",
    "{ about: 'ants' }",
    "[] { topic: { kind: 'replace', value: 'bees' } }",
    "[ 'search' ] { notes: { kind: 'append', items: [ 'bees' ] } }",
    "user,assistant,tool,assistant",
    "[ 'loaded' ]",
    "[ 'first', 'bees' ]",
    "step_limit",
    "",
  ]);
});
