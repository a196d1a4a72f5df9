/** Entry `statewright/store`: rows, rules and types for authors of stores. */

export * from "@statewright/core/store";
