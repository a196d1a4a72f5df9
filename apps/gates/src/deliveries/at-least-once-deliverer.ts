/**
 * Simulated orchestrator that delivers at least once: one delivery of a thread at a time, redelivered until it is
 * acknowledged without more work. By its seed it loses deliveries and acknowledgements, doubles deliveries, and delivers
 * old ones again late. A planted fault makes it break one of its promises.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isStatewrightError } from "@statewright/core";
import { type Delivery, type DeliveryResult, systemWorld } from "@statewright/core/adapter";
import { sqliteStore } from "@statewright/sqlite";
import { type Chance, createChance } from "@statewright/testing";
import type { DelivererUnderTest, WorkerOptions } from "@statewright/testing/conformance";
import { type CreateWorker, StoreFailedError, storeFile, type Worker, WorkerLostError } from "./worker.ts";

/** Broken promises of an orchestrator, each of which the suite must find. */
export const plantedFaults = ["loses", "doubles", "early", "out of order", "forgets keys", "swallows errors"] as const;

export type PlantedFault = (typeof plantedFaults)[number];

export interface DelivererOptions {
  readonly createWorker: CreateWorker;
  /** Seed of losses, doubles and late repeats; undefined for an orchestrator that needs none. */
  readonly seed?: number;
  readonly fault?: PlantedFault;
}

const maxAttempts = 2_000;
const hour = 3_600_000;

/** Deliverer with the parts of the simulated orchestrator. */
export type SimulatedDeliverer = Required<Omit<DelivererUnderTest, "server">>;

export function createDeliverer(options: DelivererOptions): SimulatedDeliverer {
  return new AtLeastOnceDeliverer(options);
}

class AtLeastOnceDeliverer implements SimulatedDeliverer {
  readonly folder: string = mkdtempSync(join(tmpdir(), "statewright-deliveries-"));
  readonly store: DelivererUnderTest["store"];
  readonly #options: DelivererOptions;
  readonly #chance: Chance | undefined;
  readonly #world = systemWorld();
  readonly #all: Worker[] = [];
  /** Threads with a delivery at work, and the deliveries that wait for their turn. */
  readonly #turns: Map<string, (() => void)[]> = new Map();
  readonly #background: Set<Promise<unknown>> = new Set();
  readonly #delivered: Delivery[] = [];
  readonly #resumes: (() => Promise<void>)[] = [];
  #worker: Worker;
  #workerOptions: WorkerOptions = {};
  /** True when a worker may live that lost its deliveries. */
  #mayHaveZombies = false;
  #offsetMs = 0;

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#chance = options.seed === undefined ? undefined : createChance(options.seed);
    this.store = sqliteStore(join(this.folder, storeFile), { durability: "normal", ownership: "orchestrator" });
    this.#worker = this.#startWorker();
  }

  deliver = async (delivery: Delivery): Promise<DeliveryResult> => {
    if ("message" in delivery || "cancel" in delivery) return await this.#deliverUntilDone(delivery);
    const { thread } = delivery;
    const waiting = this.#turns.get(thread);
    if (waiting === undefined) this.#turns.set(thread, []);
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await this.#deliverUntilDone(delivery);
    } finally {
      const others = this.#turns.get(thread) ?? [];
      const next = this.#options.fault === "out of order" ? others.pop() : others.shift();
      if (next === undefined) this.#turns.delete(thread);
      else next();
    }
  };

  workers = async (options: WorkerOptions): Promise<void> => {
    this.#workerOptions = options;
    const before = this.#worker;
    this.#worker = this.#startWorker();
    await this.#settleBackground();
    await before.end();
  };

  kill = async (): Promise<void> => {
    const before = this.#worker;
    this.#mayHaveZombies = true;
    this.#worker = this.#startWorker();
    await before.kill();
  };

  stop = async (): Promise<() => Promise<void>> => {
    const before = this.#worker;
    this.#mayHaveZombies = true;
    this.#worker = this.#startWorker();
    const resume = await before.stop();
    this.#resumes.push(resume);
    return resume;
  };

  advance = async (ms: number): Promise<void> => {
    this.#offsetMs += ms;
  };

  dispose = async (): Promise<void> => {
    for (const resume of this.#resumes) await resume();
    await this.#settleBackground();
    for (const worker of this.#all) await worker.end();
    await this.store.close();
    rmSync(this.folder, { recursive: true, force: true });
  };

  #startWorker(): Worker {
    const worker = this.#options.createWorker(this.folder, this.#workerOptions);
    this.#all.push(worker);
    return worker;
  }

  async #deliverUntilDone(delivery: Delivery): Promise<DeliveryResult> {
    const { fault } = this.#options;
    if (fault === "loses" && this.#delivered.length % 2 === 1) return lostResult;
    this.#delivered.push(delivery);
    if (fault === "doubles" && delivery.key !== undefined)
      this.#inBackground(this.#attempt({ ...delivery, key: `${delivery.key}.double` }));
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      if (this.#happens(5)) continue;
      if (this.#happens(4)) this.#inBackground(this.#attempt(delivery));
      if (this.#happens(4)) this.#repeatOld();
      const sent = fault === "forgets keys" ? { ...delivery, key: `${delivery.key ?? "k"}.${attempt}` } : delivery;
      const result = await this.#tryOnce(sent);
      if (result === undefined || this.#happens(5)) continue;
      if (!result.hasMore) return result;
      await new Promise<void>((resolve) => void this.#world.schedule.after(1, resolve));
    }
    throw new Error(`expected an acknowledgement within ${maxAttempts} attempts of ${JSON.stringify(delivery)}`);
  }

  /** Delivers once; undefined when the worker was lost or its store failed. */
  async #tryOnce(delivery: Delivery): Promise<DeliveryResult | undefined> {
    try {
      return await this.#attempt(delivery, this.#mayHaveZombies ? "force" : "free");
    } catch (error) {
      if (this.#options.fault === "swallows errors") return lostResult;
      if (error instanceof WorkerLostError || isStatewrightError(error) || error instanceof StoreFailedError)
        return undefined;
      throw error;
    }
  }

  #attempt(delivery: Delivery, claim: "free" | "force" = "free"): Promise<DeliveryResult> {
    const early = this.#options.fault === "early" && "timers" in delivery ? hour : 0;
    return this.#worker.deliver({ ...delivery, claim, at: this.#world.clock.now() + this.#offsetMs + early });
  }

  /** Delivers an old delivery again, out of its order. */
  #repeatOld(): void {
    const old =
      this.#chance === undefined ? undefined : this.#delivered[this.#chance.getInteger(this.#delivered.length)];
    if (old?.key !== undefined) this.#inBackground(this.#attempt(old));
  }

  #happens(oneIn: number): boolean {
    return this.#chance !== undefined && this.#chance.getInteger(oneIn) === 0;
  }

  #inBackground(attempt: Promise<unknown>): void {
    const settled = attempt.then(ignore, ignore).then(() => {
      this.#background.delete(settled);
    });
    this.#background.add(settled);
  }

  async #settleBackground(): Promise<void> {
    while (this.#background.size > 0) await Promise.all(this.#background);
  }
}

const lostResult: DeliveryResult = { status: "done", output: {}, interrupts: [], hasMore: false };

function ignore(): void {
  // A double and a late repeat are not acknowledged.
}
