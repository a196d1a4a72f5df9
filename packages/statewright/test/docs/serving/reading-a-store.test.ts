import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the programs that read a store print a thread without its graph [ND2, ND3, ND4, ND7, ND13]", async () => {
  const cwd = await mkdtemp(join(tmpdir(), "reading-"));
  onTestFinished(() => rm(cwd, { recursive: true, force: true }));
  const printed = await runProgram(new URL("reading-a-store.ts", import.meta.url), { cwd });
  expect(printed).toContain("main undefined undefined done");
  expect(printed).toContain("cheaper main 2 waiting");
  expect(printed).toContain("cheaper [ 'ask' ] 1:0 lee");
  expect(printed).toContain("[ 'mail' ]");
  expect(printed).toContain("undefined undefined 0 lost, 0 unknown 0");
  expect(printed).toContain("mail 1 attempts in 1 processes []");
  const picture = await readFile(join(cwd, "orders.svg"), "utf8");
  for (const node of ["pick", "ask", "send"]) expect(picture).toContain(`data-id="${node}"`);
  const program = new URL("thread-log.ts", import.meta.url);
  const log = await runProgram(program, { cwd, args: ["orders.db", "order-1"] });
  expect(log).toMatch(
    /superstep 3 {2}parent 2 {2}main .*\n {4}ask {2}tasks 1:0\n {4}interrupt price {2}answered by kim: 5\n {2}\+ \/price {2}5\n {6}written by 1:0 kim\n/,
  );
  expect(log).toContain("step mail  2:0 mail  once  ok  attempts 1, processes 1, failures: none");
  expect(log).toMatch(/^superstep \d+ {2}parent 2 {2}cheaper .*\n {4}fork /m);
  const price = await runProgram(program, { cwd, args: ["orders.db", "order-1", "/price"] });
  expect(price.split("\n").slice(0, 2)).toEqual([
    expect.stringMatching(/^main add superstep 3 of main \[ 'ask' \] .*by: 'kim'/),
    expect.stringMatching(/^cheaper add superstep \d+ of cheaper \[ 'ask' \] .*by: 'lee'/),
  ]);
});
