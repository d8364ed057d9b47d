/** How momus is started: MOMUS_COMMAND, else the binary of the package for this platform, else the momus on the PATH. */

import { accessSync, constants, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { MomusError } from "./control.js";
import { VERSION } from "./version.js";

/** The package that brings the binary for this platform: installed from its file, as the kit is, never from npm, where the name is nobody's. */
export const platformPackage = `momus-kit-${process.platform}-${process.arch}`;

/** The words that start momus. Throws MomusError, which says what to do. */
export function find(from: string = import.meta.url): string[] {
  const told = process.env["MOMUS_COMMAND"];
  if (told?.trim()) return isProgram(told) ? [told] : told.trim().split(/\s+/);
  try {
    return [createRequire(from).resolve(`${platformPackage}/bin/momus`)];
  } catch {
    // not installed, or another platform
  }
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    const found = join(folder, "momus");
    if (folder && isProgram(found)) return [found];
  }
  throw new MomusError(
    `there is no momus: install the file ${platformPackage}-${VERSION}.tgz that comes with the kit's, or put a momus on the PATH, ` +
      "or set MOMUS_COMMAND to how it is started",
  );
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
