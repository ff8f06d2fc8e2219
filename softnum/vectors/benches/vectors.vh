// What every bench needs: the files that +in= and +out= name, and the header's lines (# ...), copied from one to the
// other, so that a check of the answers knows what was asked. Lines may be of any length.
// (Verilator 5.006 drops $ungetc where nobody looks at what it returns.)
integer in_file, out_file, character;
reg [8*1000-1:0] text;

task give_up;
    begin
        $display("state +in=FILE (vectors as softnum writes them) and +out=FILE, both of which can be opened");
        $finish(0);
    end
endtask

task open_files;
    begin
        in_file = 0;
        out_file = 0;
        if ($value$plusargs("in=%s", text)) in_file = $fopen(text, "r");
        if ($value$plusargs("out=%s", text)) out_file = $fopen(text, "w");
        if (in_file == 0 || out_file == 0) give_up;
        character = $fgetc(in_file);
        while (character == "#") begin
            while (character != "\n" && character != -1) begin
                $fwrite(out_file, "%c", character);
                character = $fgetc(in_file);
            end
            $fwrite(out_file, "\n");
            character = $fgetc(in_file);
        end
        if ($ungetc(character, in_file) != 0 && character == -1) give_up;
    end
endtask

task close_files;
    begin
        $fclose(in_file);
        $fclose(out_file);
        $finish(0);
    end
endtask
