/** Output of `npm run example` for each agent. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  runChatScene,
  runInvoiceScene,
  runProvidersScene,
  runResearchScene,
  runReviewScene,
  runSupportScene,
} from "../../src/agents/scenes.ts";
import type { Print } from "../../src/print.ts";

async function printScene(scene: (print: Print) => Promise<void>): Promise<readonly string[]> {
  let text = "";
  await scene((piece) => {
    text += piece;
  });
  return text.trimEnd().split("\n");
}

test("the memory scene recalls in a later conversation text from an earlier one", async () => {
  expect(await printScene(runChatScene)).toEqual([
    "monday, Ann: I am a vegetarian, by the way.",
    "monday, assistant: Noted: no meat for you.",
    "friday, Ann: What shall I cook tonight?",
    "friday, assistant: How about mushroom risotto?",
  ]);
});

test("the research scene runs two researchers in parallel, and the report names their sources", async () => {
  expect(await printScene(runResearchScene)).toEqual([
    "look_into",
    "look_into",
    "  search_library",
    "  search_library",
    "- They work in hard winters. [s1]",
    "- They cost 8,000 to 15,000 euros. [s2]",
    "? How loud they are",
  ]);
});

test("the refund scene waits for an approval of a large refund", async () => {
  const [status, question = "", ...rest] = await printScene(runSupportScene);
  expect(status).toBe("waiting");
  expect(JSON.parse(question)).toMatchObject({
    tool: "refund",
    args: { orderId: "7", cents: 9_900 },
    reason: "9900 cents is more than 50 euros",
  });
  expect(rest).toEqual(["done: Your 99 euros are on their way."]);
});

test("the review scene reviews the last commit of a repository", async () => {
  const root = mkdtempSync(join(tmpdir(), "review-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
  const git = (...args: string[]) => execFileSync("git", ["-C", root, ...who, ...args], { stdio: "ignore" });
  git("init", "-q");
  mkdirSync(join(root, "src"));
  for (const [text, message] of [
    ["export const rate = 0.2;\n", "A rate"],
    ["export const rate = 2;\n", "Another rate"],
  ] as const) {
    writeFileSync(join(root, "src/rate.ts"), text);
    git("add", ".");
    git("commit", "-qm", message);
  }
  expect(await printScene((print) => runReviewScene(print, { root }))).toEqual([
    "request_changes",
    "src/rate.ts:1 risk: A scripted reviewer has read it.",
  ]);
});

test("the invoice scene reads an invoice that did not add up again", async () => {
  expect(await printScene(runInvoiceScene)).toEqual(["Paper 12.5", "Freight 5", "2026-17: 17.5 EUR"]);
});

test("the fallback scene answers with the second provider when the first is overloaded", async () => {
  expect(await printScene(runProvidersScene)).toEqual([
    "first/model: overloaded, then first/model",
    "first/model: overloaded, then second/model",
    "Good morning.",
  ]);
});
