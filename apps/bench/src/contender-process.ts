/** The process of one contender: does the rounds that it is asked for, and says what each took. */
import process from "node:process";
import { allCases } from "./cases/all.ts";
import { type LangGraph, noPeers } from "./peers/langgraph.ts";
import { type Runner, runHere } from "./runner.ts";
import type { Answer, Question } from "./start-contender.ts";

const [id, name, entry] = process.argv.slice(2);

async function openContender(): Promise<Runner> {
  const langgraph = entry === undefined ? undefined : ((await import(entry)) as LangGraph);
  const found = allCases({ ...noPeers, langgraph }).find((each) => each.id === id);
  const contender = found?.contenders.find((each) => each.name === name);
  if (contender === undefined) throw new Error(`there is no contender "${name}" of ${id}`);
  return await runHere(contender);
}

let runner: Runner | undefined;

async function answer(question: Question): Promise<unknown> {
  runner ??= await openContender();
  if (question.ask === "take") return await runner.take(question.size, question.steady);
  if (question.ask === "look") return await runner.look();
  return question.ask === "close" ? await runner.close() : undefined;
}

process.on("disconnect", () => process.exit());
process.on("message", async (question: Question) => {
  const told: Answer = await answer(question).then(
    (value) => ({ value }),
    (error: unknown) => ({ fault: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
  process.send?.(told);
});
