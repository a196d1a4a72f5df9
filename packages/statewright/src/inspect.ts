/** Entry `statewright/inspect`: reads threads, graphs and tools, and moves threads between stores. */

export * from "@statewright/core/inspect";
