/** Runs a contender in its own process, unaffected by modules, compiled code and garbage of other contenders. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Contender } from "./case.ts";
import type { RoundDetails, Runner } from "./runner.ts";
import type { Sample } from "./sample.ts";

/** Request to a contender process. */
export type ContenderRequest =
  | { readonly kind: "open" }
  | { readonly kind: "run-round"; readonly size: number; readonly steady: boolean }
  | { readonly kind: "get-details" }
  | { readonly kind: "close" };

/** Response of a contender process. `value` is absent for a request without a result. */
export type ContenderResponse = { readonly value?: unknown } | { readonly fault: string };

/**
 * Starts the process of a case's contender. The process of a peer imports the LangGraph.js module given by
 * `langgraph`.
 */
export async function startContender(
  id: string,
  { name, role }: Contender,
  langgraph: string | undefined,
): Promise<Runner> {
  const entry = role === "peer" && langgraph !== undefined ? [langgraph] : [];
  const child = fork(fileURLToPath(new URL("./contender-process.ts", import.meta.url)), [id, name, ...entry], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    execArgv: ["--no-warnings"],
  });
  const send = (request: ContenderRequest) => sendRequest(child, request, `${id}: ${name}`);
  await send({ kind: "open" });
  return {
    runRound: async (size, steady) => (await send({ kind: "run-round", size, steady })) as Sample,
    getRoundDetails: async () => (await send({ kind: "get-details" })) as RoundDetails,
    close: async () => {
      const exited = once(child, "exit");
      const bytes = (await send({ kind: "close" })) as number | undefined;
      child.disconnect();
      await exited;
      return bytes;
    },
  };
}

function sendRequest(child: ChildProcess, request: ContenderRequest, label: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const rejectOnExit = (code: number | null): void =>
      reject(new Error(`${label}: expected a response, but the process exited with code ${code}`));
    child.once("exit", rejectOnExit);
    child.once("message", (response: ContenderResponse) => {
      child.off("exit", rejectOnExit);
      if ("fault" in response) reject(new Error(`${label}: ${response.fault}`));
      else resolve(response.value);
    });
    child.send(request);
  });
}
