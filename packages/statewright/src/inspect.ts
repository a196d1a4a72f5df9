/**
 * Entry `statewright/inspect`: reads, changes, exports and deletes threads of a store without their graphs, traces runs,
 * and draws and describes graphs and tools.
 */

export * from "@statewright/agent/inspect";
export * from "@statewright/core/inspect";
