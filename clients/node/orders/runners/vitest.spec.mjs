import { expect, test } from "vitest";
import { cases } from "./cases.mjs";

cases(test, expect);
