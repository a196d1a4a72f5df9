/** A contender in a process of its own, so that none pays for what another has loaded, compiled or left to collect. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Contender } from "./case.ts";
import type { Sample } from "./measure.ts";
import type { Left, Runner } from "./runner.ts";

/** What the process is asked. */
export type Question =
  | { readonly ask: "open" }
  | { readonly ask: "take"; readonly size: number; readonly steady: boolean }
  | { readonly ask: "look" }
  | { readonly ask: "close" };

/** What it answers: `value` is absent where it has nothing to say. */
export type Answer = { readonly value?: unknown } | { readonly fault: string };

/** Start the process of a contender of a case; a peer takes the module of LangGraph.js with it. */
export async function runApart(id: string, { name, role }: Contender, langgraph: string | undefined): Promise<Runner> {
  const entry = role === "peer" && langgraph !== undefined ? [langgraph] : [];
  const child = fork(fileURLToPath(new URL("./contender-process.ts", import.meta.url)), [id, name, ...entry], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    execArgv: ["--no-warnings"],
  });
  const ask = (question: Question) => asked(child, question, `${id}: ${name}`);
  await ask({ ask: "open" });
  return {
    take: async (size, steady) => (await ask({ ask: "take", size, steady })) as Sample,
    look: async () => (await ask({ ask: "look" })) as Left,
    close: async () => {
      const ended = once(child, "exit");
      const bytes = (await ask({ ask: "close" })) as number | undefined;
      child.disconnect();
      await ended;
      return bytes;
    },
  };
}

function asked(child: ChildProcess, question: Question, who: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const died = (code: number | null): void => reject(new Error(`${who} ended with ${code} before it answered`));
    child.once("exit", died);
    child.once("message", (answer: Answer) => {
      child.off("exit", died);
      if ("fault" in answer) reject(new Error(`${who}: ${answer.fault}`));
      else resolve(answer.value);
    });
    child.send(question);
  });
}
