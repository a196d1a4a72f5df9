/** Process of one contender: runs the requested rounds and returns their measurements. */
import process from "node:process";
import { createCases } from "./cases/all.ts";
import { type LangGraph, noPeers } from "./peers/langgraph.ts";
import { openRunner, type Runner } from "./runner.ts";
import type { ContenderRequest, ContenderResponse } from "./start-contender.ts";

const [id, name, entry] = process.argv.slice(2);

async function openContender(): Promise<Runner> {
  const langgraph = entry === undefined ? undefined : ((await import(entry)) as LangGraph);
  const benchCase = createCases({ ...noPeers, langgraph }).find((each) => each.id === id);
  const contender = benchCase?.contenders.find((each) => each.name === name);
  if (contender === undefined)
    throw new Error(`expected a contender of case ${id}, got "${name}". Use a name from the case.`);
  return await openRunner(contender);
}

let runner: Runner | undefined;

async function handleRequest(request: ContenderRequest): Promise<unknown> {
  runner ??= await openContender();
  if (request.kind === "run-round") return await runner.runRound(request.size, request.steady);
  if (request.kind === "get-details") return await runner.getRoundDetails();
  return request.kind === "close" ? await runner.close() : undefined;
}

process.on("disconnect", () => process.exit());
process.on("message", async (request: ContenderRequest) => {
  const response: ContenderResponse = await handleRequest(request).then(
    (value) => ({ value }),
    (error: unknown) => ({ fault: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
  process.send?.(response);
});
