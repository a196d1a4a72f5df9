/**
 * Child process of the kill and race tests. Arguments: contender, folder, the module of the peer, and the number of
 * the kill point (0: none). The command `run` runs the thread to its next stop and exits. A command with a list of
 * threads resumes all of them at the same time and returns the outcome of each.
 */
import process from "node:process";
import { createExternalWorld } from "./external-world.ts";
import { openLangGraph } from "./langgraph.ts";
import { type ContenderId, isPeer, type Program, type Stop } from "./program.ts";
import { getErrorCode, openStatewright } from "./statewright.ts";

/** Command to the child process. */
export type ChildCommand = "run" | { readonly resume: readonly string[] };

/** Message of the child process. */
export type ChildMessage =
  | { readonly kind: "ready" }
  | { readonly kind: "stopped"; readonly stop: Stop; readonly points: number }
  | { readonly kind: "resumed"; readonly outcomes: readonly string[] };

const [id, folder = "", entry = "", killPoint = "0"] = process.argv.slice(2);
const contender = id as ContenderId;
const world = createExternalWorld(folder, Number(killPoint));
const program: Program = isPeer(contender)
  ? await openLangGraph(folder, { kind: contender, entry, world })
  : openStatewright(folder, contender, world);

process.on("message", (command: ChildCommand) => {
  if (command === "run") runToStop();
  else Promise.all(command.resume.map(resumeThread)).then((outcomes) => sendMessage({ kind: "resumed", outcomes }));
});
process.on("disconnect", () => process.exit());
sendMessage({ kind: "ready" });

async function runToStop(): Promise<void> {
  const stop = await program.runToStop("thread");
  await program.close();
  sendMessage({ kind: "stopped", stop, points: world.countKillPoints() });
  process.disconnect();
}

async function resumeThread(thread: string): Promise<string> {
  try {
    return (await program.runToStop(thread)).kind;
  } catch (error) {
    return getErrorCode(error) ?? (error instanceof Error ? error.message : String(error));
  }
}

function sendMessage(message: ChildMessage): void {
  process.send?.(message);
}
