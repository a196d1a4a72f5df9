/** Process with a store that executes the requests of its parent. */
import process from "node:process";
import type { Ask } from "../child-process.ts";
import { createRunRow, createSuperstep, graph, saveCommit } from "../rows.ts";
import { sqliteStore } from "../sqlite-store.ts";

const store = sqliteStore(process.argv[2] as string);
const sendMessage = (message: object): void => {
  process.send?.(message);
};

async function answer(ask: Ask): Promise<unknown> {
  switch (ask.do) {
    case "claim":
      return await store.claim({ ...graph, thread: ask.thread });
    case "run":
      return await saveCommit(store, {
        thread: ask.thread,
        branch: "main",
        epoch: ask.epoch,
        seq: 0,
        run: createRunRow("r1", ask.thread),
      });
    case "step":
      return await saveCommit(store, createSuperstep(ask.thread, { epoch: ask.epoch, branch: "main" }, ask.id));
    case "forever":
      return commitForever(ask.thread, ask.epoch);
    case "close":
      return store.close();
  }
}

/** Commits without end; reports each step when its commit is durable. */
function commitForever(thread: string, epoch: number): void {
  const next = (id: number): void => {
    store.commit(createSuperstep(thread, { epoch, branch: "main" }, id), (failure) => {
      sendMessage({ observed: failure === undefined ? id : failure.code });
      next(id + 1);
    });
  };
  next(1);
}

process.on("message", (ask: Ask) => {
  answer(ask).then(
    (value) => sendMessage({ id: ask.no, value }),
    (error: { code?: string; message?: string }) => sendMessage({ id: ask.no, failure: error.code ?? error.message }),
  );
});
process.on("disconnect", () => process.exit());
sendMessage({ ready: true });
