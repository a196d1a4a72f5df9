import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Model, type ModelReply, memoryStore, type Store } from "@statewright/core";
import { type Delivery, type DeliveryResult, deliver } from "@statewright/core/adapter";
import { memoryCache, type NodeCache } from "@statewright/core/store";
import {
  cacheConformance,
  createDelivererGraphs,
  type DelivererUnderTest,
  delivererConformance,
  modelConformance,
  type OpenModel,
  type StoreUnderTest,
  storeConformance,
} from "@statewright/testing/conformance";
import { describe, expect, test } from "vitest";

const openStores = (): { readonly store: Store; readonly peer: () => Store; readonly die: () => void } => {
  const store = memoryStore();
  return { store, peer: () => store.peer(), die: () => store.crash() };
};

const ownCache = (): NodeCache => memoryCache();

const adapterFor = (answers: readonly ModelReply[], wires: string[]): Model => {
  let given = 0;
  return {
    id: "own/model",
    respond: async (request, { delta }) => {
      wires.push(JSON.stringify(request));
      const answer = answers[given++];
      if (answer === undefined) throw new Error("no answer is left");
      for (const block of answer.content) {
        if (block.type === "text") delta?.({ type: "text", text: block.text });
        if (block.type === "call")
          delta?.({ type: "call", id: block.id, name: block.name, argsText: JSON.stringify(block.args) });
      }
      return answer;
    },
  };
};

describe("a custom store", () => {
  const open = (): StoreUnderTest => {
    const { store, peer, die } = openStores();
    return {
      store,
      peer,
      crash: () => {
        const next = peer();
        die();
        return next;
      },
      dispose: () => store.close(),
    };
  };
  for (const { name, run } of storeConformance) test(name, () => run(open));
});

describe("a custom cache", () => {
  for (const { name, run } of cacheConformance) test(name, () => run(() => ownCache()));
});

const open: OpenModel = (answers) => {
  const wires: string[] = [];
  return { model: adapterFor(answers, wires), listRequests: () => wires };
};

describe("a custom adapter", () => {
  for (const { name, run } of modelConformance) test(name, () => run(open));
});

describe("a custom deliverer", () => {
  const open = async (): Promise<DelivererUnderTest> => {
    const folder = await mkdtemp(join(tmpdir(), "deliverer-"));
    const store = memoryStore({ ownership: "orchestrator" });
    const serving = { store, graphs: createDelivererGraphs(folder) };
    const deliverUntilDone = async (delivery: Delivery): Promise<DeliveryResult> => {
      const result = await deliver(serving, delivery);
      return result.hasMore ? deliverUntilDone(delivery) : result;
    };
    const dispose = (): Promise<void> => rm(folder, { recursive: true, force: true });
    return { folder, store, deliver: deliverUntilDone, dispose };
  };
  const { tests, notRun } = delivererConformance([]);
  for (const { name, run } of tests) test(name, () => run(open));
  test("lists the scenarios whose parts it lacks", () => expect(notRun.length).toBeGreaterThan(10));
});
