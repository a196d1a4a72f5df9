/** Process that runs a durable machine whose promise waits until its signal fires. Argument: the file of the store. */
import process from "node:process";
import { durableMachine, run, sqliteStore } from "statewright";
import { fromPromise, setup } from "xstate";

const [file = ""] = process.argv.slice(2);
const report = (what: string): void => void process.send?.(what);

const payment = durableMachine(
  setup({
    actors: {
      charge: fromPromise(
        ({ signal }) =>
          new Promise<never>((_resolve, reject) => {
            signal.addEventListener("abort", () => {
              report("aborted");
              reject(signal.reason as Error);
            });
            report("waits");
          }),
      ),
    },
  }).createMachine({
    id: "payment",
    initial: "charging",
    states: { charging: { invoke: { src: "charge", onDone: "paid" } }, paid: { type: "final" } },
  }),
  { version: 1, effects: { charge: "idempotent" } },
);

const store = sqliteStore(file, { durability: "normal" });
const { status } = await run(payment, { store, thread: "t" }).result;
report(`ended: ${status}`);
await store.close();
process.disconnect();
