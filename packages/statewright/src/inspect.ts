/** Entry `statewright/inspect`: reads threads, graphs and tools, and moves threads between stores. */

export * from "@statewright/agent/inspect";
export * from "@statewright/core/inspect";
