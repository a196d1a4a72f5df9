/**
 * Process of the tests of notifications and of acts: runs graphs on a file, or performs an act. It reports each
 * delivered notification and each progress to its parent, and waits there for its end.
 */
import process from "node:process";
import { bulk, defineGraph, defineState, END, engine, run, START } from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";

const [, , file = "", role = "", thread = "t"] = process.argv;

export const failing = defineGraph({ name: "failing", state: defineState({}) })
  .nodes({
    work: () => {
      throw new Error("no stock");
    },
  })
  .edges({ [START]: "work", work: END });

const store = sqliteStore(file, { durability: "normal" });
const report = (message: unknown): void => void process.send?.(message);
const never = new Promise<never>(() => undefined);
// The open channel keeps a waiting process alive until it is killed.
process.on("message", () => undefined);

switch (role) {
  case "fail":
    // The process is killed right after the commit of the failure.
    await run(failing, { store, thread }).result.catch(() => report("failed"));
    await never;
    break;
  case "deliver":
  case "die": {
    const host = engine({
      store,
      graphs: [failing],
      pollMs: 20,
      notify: async ({ id, kind, thread: about }) => {
        report({ id, kind, thread: about });
        if (role === "die") await never;
      },
    });
    await host.start();
    await never;
    break;
  }
  case "delete":
  case "delete and die":
    await bulk.deleteThreads(store, {
      filter: {},
      concurrency: 2,
      onProgress: ({ done }) => void (role === "delete and die" && done === 5 && process.kill(process.pid, "SIGKILL")),
    });
    report("ended");
    await store.close();
    process.disconnect();
    break;
  case "cancel and die":
    await bulk.cancelRuns(store, {
      filter: {},
      concurrency: 2,
      onProgress: ({ done }) => void (done === 5 && process.kill(process.pid, "SIGKILL")),
    });
    break;
  case "resume and die":
  case "retry and die": {
    // The program after its repair.
    const repaired = defineGraph({ name: "failing", state: defineState({}) })
      .nodes({ work: () => ({}) })
      .edges({ [START]: "work", work: END });
    const act = role === "retry and die" ? bulk.retryRuns : bulk.resumeRuns;
    await act({
      ...{ store, graphs: [repaired], filter: {}, concurrency: 2 },
      onProgress: ({ done }) => void (done === 5 && process.kill(process.pid, "SIGKILL")),
    });
    break;
  }
  default:
    throw new Error(`unknown role ${role}`);
}
