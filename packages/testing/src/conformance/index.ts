/** Conformance suites: tests of every implementation of a contract, as data for any test runner. */
// biome-ignore lint/performance/noBarrelFile: the entry of a package
export { type ArtifactTest, artifactConformance } from "./artifacts.ts";
export { type CacheTest, cacheConformance } from "./cache.ts";
export { type DelivererConformance, delivererConformance } from "./deliverers/deliverer-conformance.ts";
export { createDelivererGraphs } from "./deliverers/deliverer-graphs.ts";
export type {
  DelivererPart,
  DelivererTest,
  DelivererUnderTest,
  WorkerOptions,
} from "./deliverers/deliverer-test.ts";
export { wordConformance } from "./long-term.ts";
export { type ModelTest, type ModelUnderTest, modelConformance, type OpenModel } from "./models.ts";
export { storeConformance } from "./store-conformance.ts";
export type { StoreTest, StoreUnderTest } from "./store-test.ts";
export { fillThread, readThreadSnapshot } from "./thread-snapshot.ts";
export type { PackWorld } from "./tool-run.ts";
export { type ToolPack, type ToolSamples, type ToolTest, toolConformance } from "./tools.ts";
