/** Entry `statewright/middleware`: ready-made middleware; options that take a model also take a model name. */

export * from "@statewright/agent/middleware";
